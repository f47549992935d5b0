// hardened HOW CMD...: runs a command as a hardened system would have it, where memory may not become
//   exec   executable once it was writable (PR_SET_MDWE, Linux 6.3)
//   write  writable, which no system does to all memory; so what depends on it is seen to have another way
// Exit code 77: this kernel cannot.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kSetMdwe = 65, kRefuseExecGain = 1, kCannot = 77 };

// mprotect(.., PROT_READ | PROT_WRITE) answers EACCES, as SELinux does.
static int forbid_to_make_writable(void) {
  struct sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PROT_READ | PROT_WRITE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof program / sizeof program[0], program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int done = strcmp(arguments[1], "exec") == 0 ? prctl(kSetMdwe, kRefuseExecGain, 0, 0, 0) == 0
                                                     : forbid_to_make_writable();
  if (!done) return kCannot;
  execv(arguments[2], arguments + 2);
  return 126;
}
