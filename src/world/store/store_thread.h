// Starts threads of the store that leave signals to the program's own threads.
#ifndef SLUICE_SRC_WORLD_STORE_STORE_THREAD_H_
#define SLUICE_SRC_WORLD_STORE_STORE_THREAD_H_

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace sluice {

// `name` has at most 15 bytes. ResourceExhausted if the system has no more threads for us.
absl::StatusOr<std::thread> StartStoreThread(const char* name, std::function<void()> work);

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_STORE_THREAD_H_
