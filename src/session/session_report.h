// The report of a session about its wires.
#ifndef SLUICE_SRC_SESSION_SESSION_REPORT_H_
#define SLUICE_SRC_SESSION_SESSION_REPORT_H_

#include "session/run_transport.h"
#include "sluice/fabric.h"
#include "sluice/session.h"

namespace sluice {

// `carrier` is what OpenRunTransport made of the options on this fabric.
SessionReport MakeSessionReport(const Fabric& fabric, const SessionOptions& options,
                                const RunTransport& carrier);

}  // namespace sluice

#endif  // SLUICE_SRC_SESSION_SESSION_REPORT_H_
