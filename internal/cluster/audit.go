package cluster

import (
	"fmt"
	"os"
)

// auditPolicy writes the policy of an audit log that has one line for each request, without bodies, and returns its file.
func auditPolicy(log string) (string, error) {
	file := log + ".policy"
	err := os.WriteFile(file, []byte(`apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
`), 0o600)
	if err != nil {
		return "", fmt.Errorf("writing the audit policy: %w", err)
	}
	return file, nil
}
