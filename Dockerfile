# ivme serve over a directory:
#   docker build -t ivme .
#   docker run -p 8000:8000 -v ivme-state:/state -e IVME_TOKEN="$(openssl rand -hex 16)" ivme
# The volume belongs to user 1000, which the server runs as; so must a directory that is mounted in its place.
FROM python:3.12-slim AS build
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /source
RUN pip wheel --no-cache-dir --wheel-dir /wheels '/source[serve]'

FROM python:3.12-slim
COPY --from=build /wheels /wheels
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --no-index --find-links /wheels 'ivme[serve]' && rm -rf /wheels \
    && useradd --create-home --uid 1000 ivme && install --directory --owner ivme /state
USER 1000
VOLUME /state
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://localhost:8000/healthz')"]
ENTRYPOINT ["ivme", "serve"]
CMD ["/state", "--create", "--host", "0.0.0.0", "--port", "8000"]
