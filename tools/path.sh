# Sourced by the tools: let every interpreter that pyenv holds answer by its name (python3.9, python3.13, …).
if command -v pyenv >/dev/null 2>&1 && [ -z "${PYENV_VERSION:-}" ]; then
  PYENV_VERSION=$(pyenv versions --bare 2>/dev/null | grep -E '^3\.(9|[1-9][0-9])\.' | sort -rV | paste -sd: -)
  [ -n "$PYENV_VERSION" ] && export PYENV_VERSION
fi
