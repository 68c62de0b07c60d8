package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trainyard/trainyard/internal/code"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/text"
	"github.com/trainyard/trainyard/internal/yard"
)

// noCode is the value of --code that leaves all files here.
const noCode = "none"

// codeDir is the directory that goes along with a command, empty if none does: the one of --code, or this one if the command names a
// file or a module of it. A command whose code is in its image names nothing of this directory.
func (r *recipe) codeDir(command []string) string {
	switch {
	case r.code == noCode:
		return ""
	case r.code != "":
		return r.code
	}
	for i, word := range command {
		if i > 0 && command[i-1] == "-m" {
			module := strings.Split(word, ".")[0]
			if exists(module) || exists(module+".py") {
				return "."
			}
		}
		if !filepath.IsAbs(word) && !strings.HasPrefix(word, "-") && exists(word) {
			return "."
		}
	}
	return ""
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// packCode packs the code that goes along with a command.
func (r *running) packCode(command []string) (*code.Bundle, error) {
	dir := r.codeDir(command)
	if dir == "" || r.file != "" {
		return nil, nil
	}
	bundle, err := code.Pack(dir)
	if err != nil {
		return nil, usageError{err}
	}
	if r.screen != nil && r.output != "json" {
		r.screen.say("The code goes along: %s of %s, %d KB packed. %s names what stays here.", text.Count(bundle.Files, "file", "files"), dir, (bundle.Packed+999)/1000, code.IgnoreFile)
	}
	return bundle, nil
}

// bringCode lets the job find its code: in the directories of this machine on the local cluster, in a bundle on any other.
func (r *running) bringCode(job *unstructured.Unstructured) (bundle *code.Bundle, prefix string, err error) {
	if r.local {
		if r.code != "" && r.code != noCode {
			if err := startIn(job, r.code); err != nil {
				return nil, "", err
			}
		}
		return nil, "", localize(job)
	}
	if bundle, err = r.packCode(r.command); bundle == nil || err != nil {
		return nil, "", err
	}
	prefix, err = addCode(job, bundle)
	return bundle, prefix, err
}

// addCode makes the pods of a job unpack the code. The job gets its name here, because the names of its parts begin with it.
func addCode(obj *unstructured.Unstructured, bundle *code.Bundle) (prefix string, err error) {
	if obj.GetName() == "" {
		obj.SetName(obj.GetGenerateName() + rand.String(5))
		obj.SetGenerateName("")
	}
	prefix = obj.GetName() + "-code-" + rand.String(5) // those of an earlier job of this name may still be there
	return prefix, editPods(obj, func(spec *corev1.PodSpec) { bundle.AddTo(spec, &spec.Containers[0], prefix) })
}

// editPods changes the pods of every role of a job.
func editPods(obj *unstructured.Unstructured, edit func(*corev1.PodSpec)) error {
	kind, ok := kinds.Of(obj.GroupVersionKind()).(kubeflow.Kind)
	if !ok {
		return fmt.Errorf("%s %s has no replicas to edit", obj.GetKind(), obj.GetName())
	}
	roles, _, _ := unstructured.NestedMap(obj.Object, "spec", kind.Layout.ReplicaSpecs)
	for role := range roles {
		at := []string{"spec", kind.Layout.ReplicaSpecs, role, "template", "spec"}
		content, _, _ := unstructured.NestedMap(obj.Object, at...)
		spec := &corev1.PodSpec{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, spec); err != nil {
			return fmt.Errorf("reading the pods of role %s: %w", role, err)
		}
		edit(spec)
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(spec)
		if err != nil {
			return fmt.Errorf("writing the pods of role %s: %w", role, err)
		}
		if err := unstructured.SetNestedMap(obj.Object, content, at...); err != nil {
			return fmt.Errorf("writing the pods of role %s: %w", role, err)
		}
	}
	return nil
}

// sendCode creates the ConfigMaps of a job's code. The job exists already, and owns them: whatever happens here, they are deleted with
// it. Its pods wait for them. If they cannot be created, the job is deleted.
func sendCode(ctx context.Context, y *yard.Yard, j *yard.Job, bundle *code.Bundle, prefix string) error {
	for _, part := range bundle.ConfigMaps(prefix) {
		part.Namespace = j.Job.Namespace
		part.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: j.Owner.GroupVersion().String(), Kind: j.Kind.Name(), Name: j.Job.Name, UID: j.Job.UID,
		}}
		if err := y.Create(ctx, part, client.FieldOwner("trainyard")); err != nil {
			after, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
			defer cancel()
			if removeErr := y.Remove(after, j); removeErr != nil {
				return fmt.Errorf("sending the code of %s, whose job is left: %w", j.Job.Name, err)
			}
			return fmt.Errorf("sending the code of %s, whose job is deleted again: %w", j.Job.Name, err)
		}
	}
	return nil
}

// startIn lets the training start in a directory of this machine, for the local cluster.
func startIn(obj *unstructured.Unstructured, dir string) error {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if info, err := os.Stat(absolute); err != nil || !info.IsDir() {
		return usageError{fmt.Errorf("--code %s: there is no such directory", dir)}
	}
	return editPods(obj, func(spec *corev1.PodSpec) {
		for i := range spec.Containers {
			spec.Containers[i].WorkingDir = absolute
		}
	})
}
