// Functions that all transports share.
#include "sluice/transport.h"

namespace sluice {

Transport::~Transport() {
  // Nobody has taken it: it stays for ever.
  if (!kept_.empty()) new std::vector<std::shared_ptr<const void>>(std::move(kept_));  // NOLINT
}

}  // namespace sluice
