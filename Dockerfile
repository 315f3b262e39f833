# The program alone, with Swift's runtime inside of it, on Debian's slim image.
#
# The stages: `outline` knows which targets there are, `dependencies` builds the packages from it in a layer of their own,
# `program` builds Keyway, and the last stage takes what it has built. `tests` stands beside them, and an image is built
# without it: `docker build --target tests .` passes the tests.

# The package with one empty file for each target, of the target's language. Its content changes with Package.swift, the
# targets and the headers of C alone, so the layer of the dependencies is built anew only then.
FROM swift:6.3-bookworm AS outline
WORKDIR /keyway
COPY . .
RUN find Sources Tests -type f ! -name module.modulemap ! -name '*.h' -delete \
  && find Sources Tests -mindepth 2 -type d -empty -delete \
  && for target in Sources/* Tests/*; do \
    if [ -d "$target/include" ]; then touch "$target/Empty.c"; \
    elif [ ! -e "$target/module.modulemap" ]; then touch "$target/Empty.swift"; fi; done \
  && mv Sources/keyway/Empty.swift Sources/keyway/main.swift \
  && mkdir /outline && cp -r Package.* Sources Tests /outline

FROM swift:6.3-bookworm AS dependencies
RUN apt-get update \
  && apt-get install -y --no-install-recommends libcurl4-openssl-dev libmicrohttpd-dev libpq-dev libsqlite3-dev \
    zlib1g-dev \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /keyway
COPY --from=outline /outline .
RUN swift build -c release --static-swift-stdlib --product keyway

# The targets of the tests stay empty: neither a change of them nor their result is part of the program.
FROM dependencies AS program
RUN rm -r Sources
COPY Config/example Config/example
COPY Sources Sources
RUN swift build -c release --static-swift-stdlib --product keyway \
  && install -D --strip "$(swift build -c release --static-swift-stdlib --show-bin-path)/keyway" /out/keyway

FROM dependencies AS tests
RUN apt-get update \
  && apt-get install -y --no-install-recommends caddy chromium chromium-driver curl nginx nodejs node-typescript openssl \
    postgresql prometheus python3-venv systemd \
  && rm -rf /var/lib/apt/lists/*
COPY . .
RUN python3 -m venv .build/python \
  && .build/python/bin/pip install -q -r Tests/IntegrationTests/requirements.txt \
  && swift test

FROM debian:bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates libcurl4 libjemalloc2 libmicrohttpd12 \
    libpq5 libsqlite3-0 libstdc++6 \
  && rm -rf /var/lib/apt/lists/* \
  && install -d -o 10001 -g 10001 /srv/keyway/data
COPY --from=program /out/keyway /usr/local/bin/keyway
WORKDIR /srv/keyway
# A number, so that an orchestrator can see that it is not root. The folder of the store is its only place to write to.
USER 10001:10001
# The loopback address of a container is its own: listen on every address. The server answers to the names localhost
# and 127.0.0.1; a deployment under another name sets KEYWAY_NAMES. It starts with keys (KEYWAY_ACCESS_KEYS, a file that
# is mounted), or where KEYWAY_ACCESS_OPEN=true says that all who reach the published port may do everything.
# A keyway.yaml that is mounted here is read; without a schema, the server has the example that is in the program.
ENV KEYWAY_HOST=0.0.0.0 KEYWAY_STORE=/srv/keyway/data
# Requests are made on one thread and carried out on another, which jemalloc takes better than the C library's allocator.
ENV LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=background_thread:true
VOLUME /srv/keyway/data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --retries=3 CMD ["keyway", "get", "/healthz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["keyway"]
CMD ["serve"]
