# One image for nodes and API: redis-server, the module and the Python package. Runs as a user without rights. By itself
# it is a whole cluster with the API, for one machine:
#   docker build -t shardqa . && docker run --init -p 127.0.0.1:8080:8080 -e SHARDQA_HTTP_KEYS=none -v shardqa:/data shardqa
FROM python:3.11-slim-bookworm AS build
RUN apt-get update \
 && apt-get install -y --no-install-recommends gcc libc6-dev make \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/shardqa
# Libraries first: they change less often than the code, so that a rebuild takes seconds.
COPY requirements.lock pyproject.toml setup.py setup.cfg ./
RUN python -m venv venv \
 && venv/bin/pip install --no-cache-dir --no-deps -r requirements.lock
COPY . .
RUN make -C module && venv/bin/pip install --no-cache-dir --no-deps --no-build-isolation -e .

FROM python:3.11-slim-bookworm
# Debian's package would start its own Redis; the policy file keeps it from that.
RUN printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod 755 /usr/sbin/policy-rc.d \
 && apt-get update \
 && apt-get install -y --no-install-recommends redis-server redis-tools mandoc \
 && rm -rf /var/lib/apt/lists/* /usr/sbin/policy-rc.d \
 && useradd --uid 10001 --user-group --no-create-home --shell /usr/sbin/nologin shardqa \
 && install -d -o shardqa -g shardqa /data /models
COPY --from=build /opt/shardqa /opt/shardqa
ENV PATH=/opt/shardqa/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1 ORT_DISABLE_TELEMETRY=1
LABEL org.opencontainers.image.title=shardqa \
      org.opencontainers.image.description="Extractive question answering inside Redis Cluster" \
      org.opencontainers.image.licenses="Apache-2.0 AND CC0-1.0"
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/readyz', timeout=3)"]
CMD ["sh", "-c", "SHARDQA_HTTP_HOST=0.0.0.0 exec shardqa up --data /data"]
