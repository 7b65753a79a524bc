/* A wall clock that a test can set. Loaded before a program's own libraries, it adds the offset in a file to the time of
 * day. Monotonic clocks are not changed, just as a change of a machine's time does not affect them. */

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Offset in seconds, in this machine's byte order. */
static const volatile long long *offset;

__attribute__((constructor)) static void open_offset(void) {
    const char *path = getenv("FAKE_WALL_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED) {
        abort();
    }
    close(file);
    offset = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int failed = (int)syscall(SYS_clock_gettime, clock, time);
    if (failed == 0 && clock == CLOCK_REALTIME) {
        time->tv_sec += *offset;
    }
    return failed;
}
