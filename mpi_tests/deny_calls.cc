// Runs a program under a seccomp filter, as some containers have one.
//
//   deny_calls NAME[,NAME]... PROGRAM [ARGUMENT]...
//
// System calls of these names fail with EPERM in the program and in all that it starts. The code is
// 77 where this system takes no filters.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::map<std::string, unsigned> kNumbers = {{"pidfd_open", SYS_pidfd_open},
                                                  {"process_vm_readv", SYS_process_vm_readv},
                                                  {"process_vm_writev", SYS_process_vm_writev},
                                                  {"statx", SYS_statx}};

bool Deny(const std::vector<unsigned>& numbers) {
  std::vector<sock_filter> filter = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const unsigned number : numbers) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: deny_calls NAME[,NAME]... PROGRAM [ARGUMENT]...\n", stderr);
    return 2;
  }
  std::vector<unsigned> numbers;
  std::istringstream names(argv[1]);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = kNumbers.find(name);
    if (found == kNumbers.end()) {
      std::fprintf(stderr, "deny_calls: what is %s?\n", name.c_str());
      return 2;
    }
    numbers.push_back(found->second);
  }
  if (!Deny(numbers)) {
    std::perror("deny_calls: no filters here");
    return 77;
  }
  execv(argv[2], argv + 2);
  std::perror(argv[2]);
  return 2;
}
