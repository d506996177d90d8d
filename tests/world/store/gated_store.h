// A store that holds up one call of a process until a test lets it go on.
#ifndef SLUICE_TESTS_WORLD_STORE_GATED_STORE_H_
#define SLUICE_TESTS_WORLD_STORE_GATED_STORE_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "world/store/store_tools.h"

namespace sluice {

// Passes all calls on. Thread: any.
class GatedStore : public SharedStore {
 public:
  using SharedStore::SharedStore;

  // The next Get or Set of a key that ends so waits, before it is passed on. So many others come
  // through before.
  void HoldUp(absl::string_view suffix, int others = 0) {
    const std::lock_guard<std::mutex> lock(mutex_);
    suffix_ = std::string(suffix);
    others_ = others;
    open_ = false;
  }
  // Waits until a call is held up.
  void AwaitHeldUp() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return held_up_; });
  }
  void LetGo() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

  absl::Status Set(absl::string_view key, absl::string_view value) override {
    Pass(key);
    return inner_->Set(key, value);
  }
  absl::StatusOr<std::string> Get(absl::string_view key, absl::Duration timeout) override {
    Pass(key);
    return inner_->Get(key, timeout);
  }

 private:
  void Pass(absl::string_view key) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (suffix_.empty() || !absl::EndsWith(key, suffix_) || others_-- > 0) return;
    suffix_.clear();
    held_up_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string suffix_;
  int others_ = 0;
  bool held_up_ = false;
  bool open_ = true;
};

}  // namespace sluice

#endif  // SLUICE_TESTS_WORLD_STORE_GATED_STORE_H_
