// nginx's configuration, with the faults in Lua.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "storage/nginx_server.h"

namespace sluice {
namespace {

// One process, no daemon, nothing outside its folder.
constexpr char kHead[] = R"(
load_module /usr/lib/nginx/modules/ndk_http_module.so;
load_module /usr/lib/nginx/modules/ngx_http_lua_module.so;
daemon off;
master_process off;
pid @DIR@/nginx.pid;
error_log @DIR@/error.log;
error_log stderr notice;
worker_rlimit_nofile 4096;
events { worker_connections 1024; }
http {
  client_body_temp_path @DIR@/tmp_body;
  proxy_temp_path @DIR@/tmp_proxy;
  fastcgi_temp_path @DIR@/tmp_fastcgi;
  uwsgi_temp_path @DIR@/tmp_uwsgi;
  scgi_temp_path @DIR@/tmp_scgi;
  log_format plain "$uri $status $body_bytes_sent $connection";
  access_log @DIR@/access.log plain;
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  reset_timedout_connection on;
  lingering_close off;
  lua_shared_dict counts 1m;
)";

constexpr char kFaults[] = R"lua(
  init_by_lua_block {
    -- Parts of an answer that a fault changes before it is sent.
    local change = {
      right = function(a) end,
      shifted = function(a) a.first = a.first + 1; a.last = a.last + 1 end,
      resized = function(a) a.total = a.total + ngx.shared.counts:incr("resized", 1, 0) end,
      unsaid = function(a) a.said = false end,
      illegible = function(a) a.range = "bytes all of them" end,
      total_unknown = function(a) a.range = "bytes " .. a.first .. "-" .. a.last .. "/*" end,
      gzip = function(a) ngx.header["Content-Encoding"] = "gzip" end,
      longer = function(a) a.body = a.body .. "x"; a.length = #a.body end,
      shorter = function(a) a.body = a.body:sub(1, -2); a.length = #a.body end,
      long_line = function(a) ngx.header["X-Long"] = string.rep("x", 150000) end,
      long_head = function(a)
        for i = 1, 40 do ngx.header["X-Long-" .. i] = string.rep("x", 10000) end
      end,
      chunked = function(a) a.length = nil end,
      chunked_longer = function(a) a.body = a.body .. "x"; a.length = nil end,
      chunked_shorter = function(a) a.body = a.body:sub(1, -2); a.length = nil end,
      endless = function(a) a.status = 200; a.said = false; a.length = nil end,
      endless_error = function(a) a.status = 503; a.said = false; a.length = nil end,
    }
    -- Ways to send the body other than as it is.
    local half = function(a)
      ngx.print(a.body:sub(1, #a.body / 2))
      ngx.flush(true)
    end
    local forever = function(a)
      local much = string.rep("x", 65536)
      for i = 1, 100000 do
        if not ngx.print(much) or not ngx.flush(true) then return end
      end
    end
    local send = {
      cut = function(a) half(a); ngx.exit(444) end,
      stalled = function(a) half(a); ngx.sleep(1000) end,
      dripping = function(a)
        for i = 1, #a.body do
          ngx.print(a.body:sub(i, i)); ngx.flush(true); ngx.sleep(0.02)
        end
      end,
      slow = function(a)
        for i = 1, #a.body, 1000 do
          ngx.print(a.body:sub(i, i + 999)); ngx.flush(true); ngx.sleep(0.03)
        end
      end,
      endless = forever,
      endless_error = forever,
      long_trailer = function(a)
        local socket = ngx.req.socket(true)
        local head = "200 OK\r\n"
        if a.first then
          head = "206 Partial Content\r\nContent-Range: bytes " .. a.first .. "-" .. a.last ..
                 "/" .. a.total .. "\r\n"
        end
        socket:send("HTTP/1.1 " .. head .. "Transfer-Encoding: chunked\r\n\r\n" ..
                    string.format("%x\r\n", #a.body) .. a.body .. "\r\n0\r\n")
        local line = "X-More: " .. string.rep("x", 1000) .. "\r\n"
        for i = 1, 100000 do
          if not socket:send(line) then return end
        end
      end,
    }
    function serve(mode, name)
      if mode == "reset" then ngx.exit(444) end
      if mode == "silent" then ngx.sleep(1000) end
      local file = io.open("@DIR@/data/" .. name, "rb")
      local all = file:read("*a")
      file:close()
      if not ngx.var.http_range then
        if change[mode] then change[mode]({body = all}) end
        if send[mode] then send[mode]({body = all}) else ngx.print(all) end
        return
      end
      local first, last = string.match(ngx.var.http_range, "^bytes=(%d+)-(%d+)$")
      first, last = tonumber(first), tonumber(last)
      local a = {status = 206, first = first, last = last, total = #all, said = true,
                 body = all:sub(first + 1, last + 1), length = last - first + 1}
      if change[mode] then change[mode](a) end
      ngx.status = a.status
      if a.said then
        ngx.header["Content-Range"] =
            a.range or "bytes " .. a.first .. "-" .. a.last .. "/" .. a.total
      end
      if a.length then ngx.header["Content-Length"] = a.length end
      if send[mode] then send[mode](a) else ngx.print(a.body) end
    end
    -- The folder of the connection's files: "newer/" for the one that is the Nth to ask.
    function side(path, at)
      local counts = ngx.shared.counts
      local asked = path .. at
      local key = asked .. ":" .. ngx.var.connection
      local number = counts:get(key)
      if not number then
        number = counts:incr(asked, 1, 0)
        counts:set(key, number)
      end
      return number == tonumber(at) and "newer/" or ""
    end
    function enter()
      local counts = ngx.shared.counts
      local now = counts:incr("now", 1, 0)
      if now > (counts:get("most") or 0) then counts:set("most", now) end
    end
  }
)lua";

constexpr char kServer[] = R"(
  server {
    listen 127.0.0.1:@PORT@ reuseport backlog=511;
    @TLS@
    rewrite_by_lua_block { enter() }
    log_by_lua_block { ngx.shared.counts:incr("now", -1, 0) }
    location = /most { content_by_lua_block { ngx.print(ngx.shared.counts:get("most")) } }
    location /plain/ { alias @DIR@/data/; }
    location ~ ^/delay/(?<ms>\d+)/(?<name>.*)$ {
      access_by_lua_block { ngx.sleep(tonumber(ngx.var.ms) / 1000) }
      alias @DIR@/data/$name;
    }
    location ~ ^/burst/(?<bad>\d+)/(?<name>.*)$ {
      access_by_lua_block {
        if ngx.shared.counts:incr("burst", 1, 0) <= tonumber(ngx.var.bad) then
          ngx.status = 503
          ngx.header["Retry-After"] = "1"
          ngx.print("busy")
          ngx.exit(200)
        end
      }
      alias @DIR@/data/$name;
    }
    location ~ ^/each_burst/(?<bad>\d+)/(?<name>.*)$ {
      access_by_lua_block {
        local asked = ngx.shared.counts:incr("burst of " .. ngx.var.name, 1, 0)
        if asked <= tonumber(ngx.var.bad) then ngx.exit(503) end
      }
      alias @DIR@/data/$name;
    }
    location ~ ^/code/(?<code>\d+)/(?<name>.*)$ {
      content_by_lua_block {
        local code = tonumber(ngx.var.code)
        if code == 302 then return ngx.redirect("/plain/" .. ngx.var.name) end
        ngx.exit(code)
      }
    }
    location ~ ^/whole/(?<name>.*)$ { max_ranges 0; alias @DIR@/data/$name; }
    location ~ ^/switch/(?<at>\d+)/(?<name>.*)$ {
      set_by_lua_block $side { return side("switch", ngx.var.at) }
      alias @DIR@/data/$side$name;
    }
    location ~ ^/dated_switch/(?<at>\d+)/(?<name>.*)$ {
      etag off;
      set_by_lua_block $side { return side("dated", ngx.var.at) }
      alias @DIR@/data/$side$name;
    }
    location /trickle/ {
      content_by_lua_block {
        for i = 1, 600 do
          if not ngx.print(" ") or not ngx.flush(true) then return end
          ngx.sleep(0.05)
        end
      }
    }
    location ~ ^/fault/(?<mode>[a-z_]+)/(?<name>.*)$ {
      content_by_lua_block { serve(ngx.var.mode, ngx.var.name) }
    }
  }
}
)";

constexpr char kTls[] = R"(
    listen 127.0.0.1:@TLS_PORT@ ssl reuseport backlog=511;
    ssl_certificate @DIR@/cert.pem;
    ssl_certificate_key @DIR@/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
)";

}  // namespace

std::string NginxConfig(const std::string& dir, int port, bool tls, int tls_port) {
  std::string text = absl::StrCat(kHead, kFaults, kServer);
  text = absl::StrReplaceAll(text, {{"@TLS@", tls ? kTls : ""}});
  return absl::StrReplaceAll(
      text,
      {{"@DIR@", dir}, {"@PORT@", absl::StrCat(port)}, {"@TLS_PORT@", absl::StrCat(tls_port)}});
}

}  // namespace sluice
