/* Kills the process at one of its writes to the journal: before it, in its middle, or after it. See write_fault.rs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int writes;

typedef ssize_t (*write_at)(int, const void *, size_t, off64_t);

static int is_of_the_journal(int fd, const char *name) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return strstr(path, name) != NULL;
}

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) {
    write_at write = (write_at)dlsym(RTLD_NEXT, "pwrite64");
    const char *order = getenv("WRITE_FAULT");
    FILE *file = order ? fopen(order, "r") : NULL;
    if (!file) return write(fd, bytes, length, at);
    int number = 0;
    char moment[16] = "";
    int read = fscanf(file, "%d %15s", &number, moment);
    fclose(file);
    int is_mark = is_of_the_journal(fd, "/journal/marks");
    if (read != 2 || !(is_mark || is_of_the_journal(fd, ".ndjson"))) return write(fd, bytes, length, at);
    if (!strcmp(moment, "unmarked")) {
        if (is_mark) return length;
        die();
    }
    if (__sync_add_and_fetch(&writes, 1) != number) return write(fd, bytes, length, at);
    if (!strcmp(moment, "middle")) write(fd, bytes, length / 2, at);
    if (!strcmp(moment, "after")) write(fd, bytes, length, at);
    die();
    return -1;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }
