// The configuration of the tests' HTTP server: its pages, and the ways in which it misbehaves.
#ifndef SLUICE_TESTS_STORAGE_NGINX_CONFIG_H_
#define SLUICE_TESTS_STORAGE_NGINX_CONFIG_H_

#include <string>

namespace sluice {

// Of nginx with its Lua module. Serves the files in DIR/data under each of these paths:
//   `/plain/NAME`           As they are.
//   `/delay/MS/NAME`        After MS milliseconds.
//   `/burst/N/NAME`         The first N requests are answered 503.
//   `/code/CODE/NAME`       Answers this code.
//   `/whole/NAME`           Knows no ranges.
//   `/switch/N/NAME`        As they are. For the Nth connection that asks, as in DIR/data/newer.
//   `/dated_switch/N/NAME`  The same, with no other version than a date.
//   `/fault/MODE/NAME`      Answers a range wrongly. The modes are in the text.
//   `/trickle/NAME`         A byte now and then, for 30 s.
//   `/most`                 The largest number of requests that were ever at work at once.
// Each request leaves a line "URI STATUS BODY_BYTES CONNECTION" in DIR/access.log. With `tls`,
// https is at `tls_port`, with the certificate in DIR/cert.pem and its key in DIR/key.pem.
std::string NginxConfig(const std::string& dir, int port, bool tls, int tls_port);

}  // namespace sluice

#endif  // SLUICE_TESTS_STORAGE_NGINX_CONFIG_H_
