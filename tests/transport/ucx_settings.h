// What tests of UCX say to it.
#ifndef SLUICE_TESTS_TRANSPORT_UCX_SETTINGS_H_
#define SLUICE_TESTS_TRANSPORT_UCX_SETTINGS_H_

#include <string>

namespace sluice {

// What UCX is told by its environment; empty: its own choice.
struct UcxSettings {
  std::string tls;         // UCX_TLS
  std::string rendezvous;  // UCX_RNDV_THRESH
};

// To be called while there is one thread.
void ApplyUcxSettings(const UcxSettings& settings);

// Says why UCX cannot be tried here; empty: it can.
std::string WhyNoUcx();

}  // namespace sluice

#endif  // SLUICE_TESTS_TRANSPORT_UCX_SETTINGS_H_
