# The operator, the agent of MPI jobs and the recorder, and nothing else, as an image: docker build -t REGISTRY/trainyard-operator:TAG .
FROM golang:1.26 AS build
WORKDIR /src
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o / ./cmd/trainyard-operator ./cmd/trainyard-agent ./cmd/trainyard-recorder

# The operator connects to its API server only, and the cluster provides that server's certificate. The recorder has the certificates for S3 in it. So
# the image needs no shell, libraries or certificates.
FROM scratch
COPY --from=build /trainyard-operator /trainyard-agent /trainyard-recorder /
USER 65532:65532
ENTRYPOINT ["/trainyard-operator"]
