"""nginx on this machine, from a folder of its own."""
import pathlib
import subprocess
import tempfile
import time
import urllib.request

from rounds import free_port

CONFIG = """
daemon off;
master_process off;
pid @DIR@/nginx.pid;
error_log @DIR@/error.log;
worker_rlimit_nofile 4096;
events { worker_connections 1024; }
http {
  client_body_temp_path @DIR@/tmp_body;
  proxy_temp_path @DIR@/tmp_proxy;
  fastcgi_temp_path @DIR@/tmp_fastcgi;
  uwsgi_temp_path @DIR@/tmp_uwsgi;
  scgi_temp_path @DIR@/tmp_scgi;
  access_log off;
  default_type application/octet-stream;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000;
  server {
    listen 127.0.0.1:@PORT@ backlog=511;
    location / { root @DATA@; }
  }
}
"""


class Nginx:
    """Serves `data` at `url` while it is entered."""

    def __init__(self, data):
        self._data = data

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="figures-nginx-")
        folder = pathlib.Path(self._folder.name)
        port = free_port()
        self.url = f"http://127.0.0.1:{port}/"
        text = CONFIG
        for mark, value in (("@DIR@", folder), ("@PORT@", port), ("@DATA@", self._data)):
            text = text.replace(mark, str(value))
        (folder / "nginx.conf").write_text(text, encoding="utf-8")
        self._process = subprocess.Popen(
            ["nginx", "-c", folder / "nginx.conf", "-p", folder, "-e", folder / "error.log"])
        try:
            self._wait_until_it_answers()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()

    def _wait_until_it_answers(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for _ in range(200):
            if self._process.poll() is not None:
                raise RuntimeError("nginx did not start")
            try:
                opener.open(self.url + "index.json", timeout=1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise RuntimeError("nginx does not answer")
