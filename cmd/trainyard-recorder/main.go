// Command trainyard-recorder records what happens to the jobs of a Kubernetes cluster, and shows it in a dashboard.
package main

import (
	"fmt"
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // the certificates for S3: the image has none

	"github.com/trainyard/trainyard/internal/archive"
)

func main() {
	if err := archive.Run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
