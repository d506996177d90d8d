// A store whose members have proved that they know a token.
#ifndef SLUICE_SRC_WORLD_STORE_TOKEN_STORE_H_
#define SLUICE_SRC_WORLD_STORE_TOKEN_STORE_H_

#include <string>

#include "absl/strings/string_view.h"
#include "sluice/store.h"

namespace sluice {

class TokenStore : public Store {
 public:
  // "": none. Thread: any.
  virtual const std::string& token() const = 0;
  // This host's address on the first connection, as digits; "": a loopback one. Thread: any.
  virtual const std::string& own_host() const = 0;
  // Sets a good key to a good value over the connection that stands, without waiting for an answer:
  // it may be lost. Thread: any.
  virtual void Post(absl::string_view key, absl::string_view value) = 0;
};

}  // namespace sluice

#endif  // SLUICE_SRC_WORLD_STORE_TOKEN_STORE_H_
