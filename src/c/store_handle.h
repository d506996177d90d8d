// A handle of a store. For those that know nothing of streams, and for those that do.
#ifndef SLUICE_SRC_C_STORE_HANDLE_H_
#define SLUICE_SRC_C_STORE_HANDLE_H_

#include <memory>

namespace sluice {
class Store;  // sluice/store.h
}  // namespace sluice

struct sluice_store {
  std::shared_ptr<sluice::Store> store;
};

#endif  // SLUICE_SRC_C_STORE_HANDLE_H_
