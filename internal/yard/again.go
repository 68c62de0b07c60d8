package yard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/record"
)

// ErrNotFinished says that a job of the name exists and still runs.
var ErrNotFinished = errors.New("exists and is not finished")

// Written is the job as a person would write it: without its status and what the API server has added.
func (j *Job) Written() (map[string]any, error) {
	text, err := json.Marshal(j.Object)
	if err != nil {
		return nil, fmt.Errorf("reading job %s: %w", j.Job.Name, err)
	}
	if j.Recorded != nil {
		text = j.Recorded.Object
	}
	var content map[string]any
	if err := json.Unmarshal(text, &content); err != nil {
		return nil, fmt.Errorf("reading job %s: %w", j.Job.Name, err)
	}
	content["apiVersion"], content["kind"] = j.Kind.GroupVersion().String(), j.Kind.Name()
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, key := range []string{
			"uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "deletionTimestamp", "deletionGracePeriodSeconds", "finalizers", "ownerReferences",
		} {
			delete(metadata, key)
		}
	}
	return content, nil
}

// Again submits a job once more under its name. The finished one is deleted first; what was recorded of it stays.
func (y *Yard) Again(ctx context.Context, j *Job) (*Job, error) {
	content, err := j.Written()
	if err != nil {
		return nil, err
	}
	if variable, is := record.MaskedVariable(content); is {
		return nil, BadInput{Err: fmt.Errorf("the value of %s looks like a secret, so the record of %s does not have it: copy the manifest, fill it in, and run it", variable, j.Job.Name)}
	}
	if _, err := y.RemoveFinished(ctx, j.Kind, j.Job.Name); err != nil {
		return nil, err
	}
	return y.Submit(ctx, j.Kind, &unstructured.Unstructured{Object: content})
}

// RemoveFinished deletes the finished job of a name, if there is one, and waits until it is gone. One that has not ended is an error,
// and is returned.
func (y *Yard) RemoveFinished(ctx context.Context, kind kinds.Adapter, name string) (*Job, error) {
	old, err := y.Find(ctx, strings.ToLower(kind.Name())+"/"+name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !old.Status.Finished() && !old.Job.Deleting {
		return old, fmt.Errorf("job %s %w", name, ErrNotFinished)
	}
	if err := y.Remove(ctx, old); err != nil {
		return old, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return old, y.AwaitGone(limited, old, func(bool) {})
}
