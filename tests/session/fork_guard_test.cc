// Who is a child of the process that made something.
#include "session/base/fork_guard.h"

#include <sys/wait.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace sluice {
namespace {

// How the child ends in which `look` says what is wrong; 0: nothing.
template <typename Look>
int InChild(const Look& look) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang ends
    _exit(look());
  }
  int outcome = -1;
  if (child < 0 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return -1;
  return WEXITSTATUS(outcome);
}

TEST(ForkGuardTest, ChildrenAndTheirChildrenAreTold) {
  const ForkGuard guard;
  EXPECT_TRUE(guard.Check().ok());
  EXPECT_EQ(InChild([&guard] {
              if (!guard.InChild()) return 1;
              if (guard.Check().code() != absl::StatusCode::kFailedPrecondition) return 2;
              const ForkGuard own;
              if (own.InChild() || !own.Check().ok()) return 3;
              return InChild([&guard, &own] { return guard.InChild() && own.InChild() ? 0 : 4; });
            }),
            0);
  EXPECT_FALSE(guard.InChild());
  EXPECT_TRUE(guard.Check().ok());
}

}  // namespace
}  // namespace sluice
