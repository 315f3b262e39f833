# The program alone, about 14 MB with its symbols stripped (56 MB before), on Swift's slim image.
#
# The stages: `outline` knows which targets there are, `build` builds the dependencies from it in a layer of their own,
# then tests and builds Keyway, and the last stage takes the program.

# The package with one empty file for each target. Its content changes with Package.swift and the targets alone, so
# the layer of the dependencies is built anew only then.
FROM swift:6.3-bookworm AS outline
WORKDIR /keyway
COPY . .
RUN find Sources Tests -type f ! -name module.modulemap ! -name '*.h' -delete \
  && find Sources Tests -mindepth 2 -type d -empty -delete \
  && for target in Sources/* Tests/*; do [ -e "$target/module.modulemap" ] || touch "$target/Empty.swift"; done \
  && mv Sources/keyway/Empty.swift Sources/keyway/main.swift \
  && mkdir /outline && cp -r Package.swift Sources Tests /outline

FROM swift:6.3-bookworm AS build
RUN apt-get update \
  && apt-get install -y --no-install-recommends libmicrohttpd-dev libsqlite3-dev chromium chromium-driver curl \
    nodejs node-typescript python3-venv \
  && rm -rf /var/lib/apt/lists/*
WORKDIR /keyway
COPY --from=outline /outline .
RUN swift build --build-tests && swift build -c release --product keyway && rm -r Sources Tests
COPY . .
RUN python3 -m venv .build/python \
  && .build/python/bin/pip install -q -r Tests/IntegrationTests/requirements.txt \
  && swift test
RUN swift build -c release --product keyway \
  && install -D --strip "$(swift build -c release --show-bin-path)/keyway" /out/bin/keyway

FROM swift:6.3-bookworm-slim
RUN apt-get update \
  && apt-get install -y --no-install-recommends libmicrohttpd12 libnettle8 libsqlite3-0 libcurl4 \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --system --home-dir /srv/keyway --create-home keyway \
  && install -d -o keyway /srv/keyway/data
COPY --from=build /out/bin/keyway /usr/local/bin/keyway
COPY --from=build /keyway/Config /srv/keyway/Config
WORKDIR /srv/keyway
USER keyway
# The loopback address of a container is its own: listen on every address. The server answers to the names localhost
# and 127.0.0.1; a deployment under another name sets KEYWAY_NAMES. It starts with keys (KEYWAY_ACCESS_KEYS, a file that
# is mounted), or where KEYWAY_ACCESS_OPEN=true says that all who reach the published port may do everything.
ENV KEYWAY_HOST=0.0.0.0 KEYWAY_STORE=/srv/keyway/data
VOLUME /srv/keyway/data
EXPOSE 8080
HEALTHCHECK --interval=10s --timeout=3s --retries=3 CMD ["keyway", "get", "/healthz"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["keyway"]
CMD ["serve"]
