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

// anyError tells whether a problem is one for which a cluster would refuse an object, as far as can be known without it.
func anyError(p lint.Problem) bool { return p.Severity == lint.Error }

// certain tells whether any cluster would refuse an object for a problem.
func certain(p lint.Problem) bool { return anyError(p) && !p.Depends }

// sound refuses the objects of a file for the first of their problems for which they are refused.
func sound(ctx context.Context, file string, docs []*document.Document, refused func(lint.Problem) bool) error {
	p, err := firstProblem(ctx, docs, refused)
	if err != nil || p == nil {
		return err
	}
	return firstOf(file, strings.Replace(p.String(), " error:", "", 1))
}

// firstOf says the first thing that is wrong with a file, and where to find the others.
func firstOf(file, said string) error {
	if file == "-" {
		return usageError{errors.New(said)}
	}
	return usageError{fmt.Errorf("%s; `trainyard lint -f %s` lists all", said, file)}
}

// acceptable refuses a job that flags made, before a cluster is started for it.
func acceptable(ctx context.Context, made *unstructured.Unstructured) error {
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
	p, err := firstProblem(ctx, docs, anyError)
	if err != nil || p == nil {
		return err
	}
	return usageError{fmt.Errorf("the job would be refused: %s: %s", p.Path, p.Message)}
}

func firstProblem(ctx context.Context, docs []*document.Document, refused func(lint.Problem) bool) (*lint.Problem, error) {
	problems, _, err := lint.Documents(ctx, docs)
	if err != nil {
		return nil, err
	}
	for _, p := range problems {
		if refused(p) {
			return &p, nil
		}
	}
	return nil, nil
}
