// Work on several threads at once.
#ifndef SLUICE_TESTS_MAIN_ON_THREADS_H_
#define SLUICE_TESTS_MAIN_ON_THREADS_H_

#include <functional>
#include <thread>
#include <vector>

namespace sluice {

// Calls `body` for each number below `count`, on a thread for each, and waits for all.
inline void OnThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace sluice

#endif  // SLUICE_TESTS_MAIN_ON_THREADS_H_
