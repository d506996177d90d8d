// The library libucp, loaded at run time: a table of the functions that are used of it.
#ifndef SLUICE_SRC_TRANSPORT_UCX_UCX_LIBRARY_H_
#define SLUICE_SRC_TRANSPORT_UCX_UCX_LIBRARY_H_

#include <ucp/api/ucp.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace sluice {

// All of them are in UCX 1.13, and in every later one.
#define SLUICE_UCX_FUNCTIONS(X)     \
  X(ucp_get_version)                \
  X(ucp_get_version_string)         \
  X(ucp_config_read)                \
  X(ucp_config_modify)              \
  X(ucp_config_release)             \
  X(ucp_init_version)               \
  X(ucp_cleanup)                    \
  X(ucp_worker_create)              \
  X(ucp_worker_destroy)             \
  X(ucp_worker_query)               \
  X(ucp_worker_release_address)     \
  X(ucp_worker_progress)            \
  X(ucp_worker_set_am_recv_handler) \
  X(ucp_ep_create)                  \
  X(ucp_ep_close_nbx)               \
  X(ucp_am_send_nbx)                \
  X(ucp_tag_send_nbx)               \
  X(ucp_tag_recv_nbx)               \
  X(ucp_tag_probe_nb)               \
  X(ucp_tag_msg_recv_nbx)           \
  X(ucp_request_cancel)             \
  X(ucp_request_check_status)       \
  X(ucp_request_free)               \
  X(ucp_dt_create_generic)          \
  X(ucp_dt_destroy)                 \
  X(ucs_status_string)

// Stays loaded until the process ends: UCX has threads, signal handlers and hooks of its own.
// Thread: any.
struct UcxLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name takes none
#define SLUICE_UCX_MEMBER(name) decltype(&::name) name = nullptr;
  SLUICE_UCX_FUNCTIONS(SLUICE_UCX_MEMBER)
#undef SLUICE_UCX_MEMBER

  // The file that the environment's SLUICE_UCX_LIBRARY names, or the system's. Unavailable if it
  // cannot be loaded, lacks a function, or is older than 1.13; says why. Lives for ever.
  static absl::StatusOr<const UcxLibrary*> Get();

  // The same of this file, a path or a name that the system's loader looks for.
  static absl::StatusOr<const UcxLibrary*> Load(const std::string& file);

  // "1.13.1".
  std::string version() const;

  // "`what`: UCX says: Connection reset by remote peer". Unavailable, or ResourceExhausted where
  // UCX lacks memory or some other resource.
  absl::Status Error(ucs_status_t status, absl::string_view what) const;
};

}  // namespace sluice

#endif  // SLUICE_SRC_TRANSPORT_UCX_UCX_LIBRARY_H_
