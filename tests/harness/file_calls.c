/* Records which threads allocate space in files or shorten them. Seccomp traps fallocate and ftruncate, whether they
   are called by the C library or not. See file_calls.rs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

/* Sixth argument, which neither call has: the call comes from here and is let through. */
#define PASS 0x51ce

#if defined(__x86_64__)
#define ARGUMENT(context, register, number) ((context)->uc_mcontext.gregs[register])
#define RESULT(context) ((context)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
#define ARGUMENT(context, register, number) ((context)->uc_mcontext.regs[number])
#define RESULT(context) ((context)->uc_mcontext.regs[0])
#endif

static int records;

static void record(int fd, const char *call) {
    char thread[32] = "", link[64], path[4096], line[4200];
    prctl(PR_GET_NAME, thread);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return;
    path[length] = 0;
    int written = snprintf(line, sizeof line, "%s %s %s\n", thread, call, path);
    if (write(records, line, written) != written) abort();
}

static void trapped(int signal, siginfo_t *info, void *of_thread) {
    ucontext_t *context = of_thread;
    int before = errno;
    long fd = ARGUMENT(context, REG_RDI, 0), second = ARGUMENT(context, REG_RSI, 1), result;
    if (info->si_syscall == SYS_fallocate) {
        record(fd, "fallocate");
        long at = ARGUMENT(context, REG_RDX, 2), length = ARGUMENT(context, REG_R10, 3);
        result = syscall(SYS_fallocate, fd, second, at, length, 0L, (long)PASS);
    } else {
        record(fd, "ftruncate");
        result = syscall(SYS_ftruncate, fd, second, 0L, 0L, 0L, (long)PASS);
    }
    RESULT(context) = result < 0 ? -errno : result;
    errno = before;
    (void)signal;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("FILE_CALLS");
    if (!path) return;
    records = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    struct sigaction action = { .sa_sigaction = trapped, .sa_flags = SA_SIGINFO };
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ftruncate, 0, 2),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASS, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = { .len = sizeof filter / sizeof *filter, .filter = filter };
    if (records < 0 || sigaction(SIGSYS, &action, NULL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("file_calls");
        abort();
    }
}
