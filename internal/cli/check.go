package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/lint"
)

// isError reports whether a cluster would refuse an object for a problem, as far as that can be known without the cluster.
func isError(p lint.Problem) bool { return p.Severity == lint.Error }

// isCertainError reports whether every cluster would refuse an object for a problem.
func isCertainError(p lint.Problem) bool { return isError(p) && !p.Depends }

// checkDocuments refuses a file for the first problem that refuse selects.
func checkDocuments(ctx context.Context, file string, docs []*document.Document, refuse func(lint.Problem) bool) error {
	p, err := firstProblem(ctx, docs, refuse)
	if err != nil || p == nil {
		return err
	}
	return refuseFile(file, strings.Replace(p.String(), " error:", "", 1))
}

// refuseFile is an error with the first problem of a file, and says how to list the others.
func refuseFile(file, problem string) error {
	if file == "-" {
		return usageError{errors.New(problem)}
	}
	return usageError{fmt.Errorf("%s; `trainyard lint -f %s` lists all", problem, file)}
}

// checkJob refuses a job that was built from flags, before a cluster is started for it.
func checkJob(ctx context.Context, made *unstructured.Unstructured) error {
	named := made.DeepCopy()
	if named.GetName() == "" {
		named.SetName(named.GetGenerateName() + "xxxxx")
	}
	text, err := yaml.Marshal(named.Object)
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	docs, err := document.Parse("", string(text))
	if err != nil {
		return err
	}
	p, err := firstProblem(ctx, docs, isError)
	if err != nil || p == nil {
		return err
	}
	return usageError{fmt.Errorf("the job would be rejected: %s: %s", p.Path, p.Message)}
}

func firstProblem(ctx context.Context, docs []*document.Document, refuse func(lint.Problem) bool) (*lint.Problem, error) {
	problems, _, err := lint.Documents(ctx, docs)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		if refuse(p) {
			return &p, nil
		}
	}
	return nil, nil
}
