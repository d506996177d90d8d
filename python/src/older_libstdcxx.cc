// Keeps the module loadable where libstdc++ is older than GCC 12's, as on RHEL 9.
//
// GCC 12 gave std::condition_variable::wait a new version, GLIBCXX_3.4.30, and the module takes no
// other symbol of that version. This definition is the module's own, and nobody else sees it.
#include <condition_variable>
#include <mutex>

#if defined(_GLIBCXX_RELEASE) && _GLIBCXX_RELEASE >= 12
// glibc's function, as in libstdc++. It may unwind the stack where a thread is cancelled.
void std::condition_variable::wait(std::unique_lock<std::mutex>& lock) {
  pthread_cond_wait(native_handle(), lock.mutex()->native_handle());
}
#endif
