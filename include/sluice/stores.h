// Which stores a copy uses: plain ones, which leave what they write in the cache, or streaming
// ones, which pass the cache by.
#ifndef SLUICE_STORES_H_
#define SLUICE_STORES_H_

#include <cstdint>

namespace sluice {

enum class Stores : uint8_t {
  kAuto,       // by the copy's own size, and this machine's cache
  kPlain,      // for what is read soon
  kStreaming,  // for large results; still plain for rows where streaming does not pay
};

}  // namespace sluice

#endif  // SLUICE_STORES_H_
