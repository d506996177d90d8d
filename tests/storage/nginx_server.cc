// Starts and stops nginx. Its ports are held from here until it has them, and it is waited for by
// what it says, not by trying.
#include "storage/nginx_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace sluice {
namespace {

constexpr char kNginx[] = "/usr/sbin/nginx";
constexpr char kLua[] = "/usr/lib/nginx/modules/ngx_http_lua_module.so";
constexpr char kOpenssl[] = "/usr/bin/openssl";

absl::Status Installed(bool tls) {
  for (const char* const path : {kNginx, kLua, kOpenssl}) {
    if ((path == kOpenssl && !tls) || access(path, R_OK) == 0) continue;
    return absl::UnavailableError(absl::StrCat("not installed: ", path));
  }
  return absl::OkStatus();
}

std::string FileText(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Takes a free port and keeps it, for whoever listens there with SO_REUSEPORT. The descriptor.
int ReservePort(int* port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0 ||
      bind(fd, any, size) != 0 || getsockname(fd, any, &size) != 0) {
    return -1;
  }
  *port = ntohs(address.sin_port);
  return fd;
}

// Reads until `sign` has come, or there is no more. What was read.
std::string ReadUntil(int fd, absl::string_view sign) {
  std::string text;
  char part[512];
  while (!absl::StrContains(text, sign)) {
    const ssize_t count = read(fd, part, sizeof(part));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(part, static_cast<size_t>(count));
  }
  return text;
}

bool MakeCertificate(const std::string& dir, const std::string& prefix) {
  const std::string command = absl::StrCat(
      kOpenssl, " req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2",
      " -subj /CN=sluice-test -addext subjectAltName=IP:127.0.0.1 -keyout '", dir, "/", prefix,
      "key.pem' -out '", dir, "/", prefix, "cert.pem' 2>'", dir, "/openssl.log'");
  return std::system(command.c_str()) == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<NginxServer>> NginxServer::Make(bool tls) {
  if (absl::Status status = Installed(tls); !status.ok()) return status;
  std::string dir = std::filesystem::temp_directory_path() / "sluice-nginx-XXXXXX";
  if (mkdtemp(dir.data()) == nullptr) return absl::InternalError("no temporary folder");
  std::unique_ptr<NginxServer> server(new NginxServer(dir));
  std::filesystem::create_directory(dir + "/data");
  if (tls && !(MakeCertificate(dir, "") && MakeCertificate(dir, "other-"))) {
    return absl::InternalError(absl::StrCat("openssl: ", FileText(dir + "/openssl.log")));
  }
  // Whatever proxy the environment names cannot reach this machine's loopback.
  setenv("no_proxy", "127.0.0.1,localhost", 1);
  if (absl::Status status = server->Launch(tls); !status.ok()) return status;
  return server;
}

absl::Status NginxServer::Launch(bool tls) {
  const int held = ReservePort(&port_);
  const int tls_held = ReservePort(&tls_port_);
  if (held < 0 || tls_held < 0) return absl::InternalError("no port to listen at");
  std::ofstream(dir_ + "/nginx.conf") << NginxConfig(dir_, port_, tls, tls_port_);
  const int says = Spawn();
  // It says so once it listens.
  constexpr absl::string_view kSign = "event method";
  const std::string said = says < 0 ? "no process" : ReadUntil(says, kSign);
  for (const int fd : {held, tls_held, says}) close(fd);
  if (absl::StrContains(said, kSign)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("nginx did not start: ", said));
}

int NginxServer::Spawn() {
  const std::string config = dir_ + "/nginx.conf";
  const std::string error_log = dir_ + "/error.log";
  const char* const arguments[] = {kNginx,         "-p", dir_.c_str(),      "-c",
                                   config.c_str(), "-e", error_log.c_str(), nullptr};
  const char* const environment[] = {nullptr};
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);  // nobody listens to all that it says
    dup2(ends[1], STDERR_FILENO);
    execve(kNginx, const_cast<char**>(arguments), const_cast<char**>(environment));
    _exit(127);
  }
  close(ends[1]);
  return ends[0];
}

NginxServer::~NginxServer() {
  Stop();
  std::error_code ignored;
  std::filesystem::remove_all(dir_, ignored);
}

void NginxServer::Write(absl::string_view name, absl::string_view content) const {
  const std::filesystem::path path = absl::StrCat(dir_, "/data/", name);
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

std::string NginxServer::Url(absl::string_view path) const {
  return absl::StrCat("http://127.0.0.1:", port_, "/", path);
}

std::string NginxServer::TlsUrl(absl::string_view path) const {
  return absl::StrCat("https://127.0.0.1:", tls_port_, "/", path);
}

std::vector<NginxServer::Request> NginxServer::Stop() {
  if (pid_ > 0) {
    kill(pid_, SIGTERM);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
  std::vector<Request> requests;
  std::ifstream log(dir_ + "/access.log");
  Request request;
  while (log >> request.uri >> request.status >> request.body_bytes >> request.connection) {
    if (request.uri != "/most") requests.push_back(request);
  }
  return requests;
}

}  // namespace sluice
