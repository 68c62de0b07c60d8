package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/job"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/lint"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/runtimes"
)

// addFile adds the flag that names a file.
func addFile(cmd *cobra.Command, file *string, what string) {
	cmd.Flags().VarP((*fileFlag)(file), "file", "f", what+`; "-" reads standard input`)
	_ = cmd.MarkFlagFilename("file", "yaml", "yml", "json") // fails only for a flag that is not there
}

// fileFlag is a flag that names a file and may be given once.
type fileFlag string

// errTwoFiles refuses a second file, which would replace the first.
var errTwoFiles = errors.New("-f takes one file, but two are given: put both into one file, separated by ---")

func (f *fileFlag) String() string { return string(*f) }

// Type is what help shows.
func (*fileFlag) Type() string { return "string" }

// Set stores the file's name.
func (f *fileFlag) Set(name string) error {
	if *f != "" {
		return errTwoFiles
	}
	*f = fileFlag(name)
	return nil
}

// readInput reads a file; "-" is standard input. Errors call it what.
func readInput(cmd *cobra.Command, file, what string) ([]byte, error) {
	var content []byte
	var err error
	if file == "-" {
		content, err = io.ReadAll(cmd.InOrStdin())
	} else {
		content, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, usageError{fmt.Errorf("reading the %s: %w", what, err)}
	}
	return content, nil
}

// readManifest reads the text of the file that -f names.
func readManifest(cmd *cobra.Command, file string) (string, error) {
	if file == "" {
		return "", usageError{fmt.Errorf("no manifest is named: use `%s -f job.yaml`", cmd.CommandPath())}
	}
	content, err := readInput(cmd, file, "manifest")
	return string(content), err
}

// readFile reads the objects of the file that -f names.
func readFile(cmd *cobra.Command, file string) ([]*document.Document, error) {
	content, err := readManifest(cmd, file)
	if err != nil {
		return nil, err
	}
	docs, err := document.Parse(file, content)
	switch mistakes := document.Mistakes(err); {
	case len(mistakes) > 1:
		return nil, refuseFile(file, mistakes[0].Error())
	case err != nil:
		return nil, fileError(err)
	}
	return docs, nil
}

// fileError makes an error in a file a usage error.
func fileError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// jobOfFile is a job of a file, read by its kind.
type jobOfFile struct {
	*document.Document
	kind kinds.Adapter
	*manifest.Manifest
}

// readJobs reads the jobs of a file, for verbs that need no cluster. There must be at least one, and no errors.
func readJobs(cmd *cobra.Command, file string) ([]jobOfFile, error) {
	docs, err := readFile(cmd, file)
	if err != nil {
		return nil, err
	}
	return jobsAmong(cmd.Context(), file, docs, isError)
}

// jobsAmong reads the jobs of a file. It refuses the file for the first problem that refuse selects.
func jobsAmong(ctx context.Context, file string, docs []*document.Document, refuse func(lint.Problem) bool) ([]jobOfFile, error) {
	if !slices.ContainsFunc(docs, func(doc *document.Document) bool { return kindOf(doc) != nil }) {
		if err := checkDocuments(ctx, file, docs, isError); err != nil { // it may be a job with a wrong apiVersion or kind
			return nil, err
		}
		return nil, usageError{fmt.Errorf("%s has no training job in it: the kinds are %s", file, strings.Join(kindNames(), ", "))}
	}
	if err := checkDocuments(ctx, file, docs, refuse); err != nil {
		return nil, err
	}
	var jobs []jobOfFile
	for _, doc := range docs {
		kind := kindOf(doc)
		if kind == nil {
			continue
		}
		job, err := readJob(doc, kind, docs)
		if err != nil {
			return nil, fileError(err)
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// kindOf is the kind of a document, nil if it is not a training job.
func kindOf(doc *document.Document) kinds.Adapter { return kinds.Of(doc.Object.GroupVersionKind()) }

func kindNames() []string {
	var names []string
	for _, kind := range kinds.All {
		names = append(names, kind.Name())
	}
	return names
}

func readJob(doc *document.Document, kind kinds.Adapter, file []*document.Document) (jobOfFile, error) {
	obj := kind.New()
	wrong := func(err error) (jobOfFile, error) {
		return jobOfFile{}, &document.Error{File: doc.File, Line: doc.Node.Line, Err: err}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc.Object.Object, obj); err != nil {
		return wrong(err)
	}
	if obj.GetNamespace() == "" {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if obj.GetName() == "" {
		if obj.GetGenerateName() == "" {
			return wrong(errors.New("the job has no name: add metadata.name"))
		}
		obj.SetName(obj.GetGenerateName() + "xxxxx")
	}
	if err := runtimes.Complete(kind, obj, file); err != nil && !errors.Is(err, runtimes.ErrNotFound) {
		return wrong(err)
	}
	return jobOfFile{doc, kind, kind.Read(obj)}, nil
}

// oneJob is the only job of a file, for verbs that need no cluster.
func oneJob(cmd *cobra.Command, file string) (jobOfFile, error) {
	jobs, err := readJobs(cmd, file)
	if err != nil {
		return jobOfFile{}, err
	}
	return only(cmd, file, jobs)
}

// onlyJob is the only job among objects that will be submitted to a cluster.
func onlyJob(cmd *cobra.Command, file string, docs []*document.Document) (jobOfFile, error) {
	jobs, err := jobsAmong(cmd.Context(), file, docs, isCertainError)
	if err != nil {
		return jobOfFile{}, err
	}
	return only(cmd, file, jobs)
}

func only(cmd *cobra.Command, file string, jobs []jobOfFile) (jobOfFile, error) {
	if len(jobs) > 1 {
		return jobOfFile{}, usageError{fmt.Errorf("%s has %d training jobs in it, and `%s` takes one", file, len(jobs), cmd.CommandPath())}
	}
	return jobs[0], nil
}

// checkOffline refuses a job that cannot be processed without a cluster. The participle says what the caller does, such as rendered.
func checkOffline(j job.Job, participle string) error {
	if j.Missing != "" {
		return usageError{fmt.Errorf("%s cannot be %s: %s", j.Name, participle, j.Missing)}
	}
	if role, found := j.TooManyReplicas(); found {
		return usageError{fmt.Errorf("%s cannot be %s: it has %d replicas of %s, and the limit is %d", j.Name, participle, j.Size(role), role.Name, job.MaxReplicas)}
	}
	return nil
}
