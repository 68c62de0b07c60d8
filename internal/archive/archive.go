// Package archive is the program trainyard-recorder: it records what happens to the jobs of a Kubernetes cluster, and shows it.
//
//	trainyard-recorder --store PLACE       records until it is stopped
//	trainyard-recorder ui --store PLACE    serves the dashboard of what is recorded
//
// These are two processes, so that a large search in the dashboard does not delay the recorder. They share a directory.
package archive

import (
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/trainyard/trainyard/internal/record"
	"github.com/trainyard/trainyard/internal/record/s3"
)

// Run is the program with its arguments. It runs until it is told to stop.
func Run(args []string) error {
	run := recordJobs
	if len(args) > 0 && args[0] == "ui" {
		args, run = args[1:], serveDashboard
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, nil))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return run(args)
}

// place is where records are, as flags say it.
type place struct {
	store, dir string
}

func (p *place) register(flags *flag.FlagSet) {
	flags.StringVar(&p.store, "store", "", "Where the records are: a directory, or s3://BUCKET/PREFIX, with ?endpoint=https://HOST if the bucket is not at AWS. Required.")
	flags.StringVar(&p.dir, "dir", "", "With a bucket: the directory for what is not in the bucket yet. Required with s3://.")
}

func (p *place) open() (*record.Store, error) {
	switch isBucket := len(p.store) > 5 && p.store[:5] == "s3://"; {
	case p.store == "":
		return nil, fmt.Errorf("--store is missing: name a directory, or s3://BUCKET/PREFIX")
	case isBucket && p.dir == "":
		return nil, fmt.Errorf("--dir is missing: name a directory for what is not in the bucket yet")
	case !isBucket && p.dir != "":
		return nil, fmt.Errorf("--dir is only for buckets: the records are in %s", p.store)
	}
	return s3.OpenStore(p.store, p.dir)
}

// bytesFlag is a size as Kubernetes writes it: 20Gi.
type bytesFlag struct{ value *int64 }

// String is the size.
func (b bytesFlag) String() string {
	if b.value == nil {
		return ""
	}
	return resource.NewQuantity(*b.value, resource.BinarySI).String()
}

// Set takes a size.
func (b bytesFlag) Set(text string) error {
	size, err := resource.ParseQuantity(text)
	if err != nil || size.Value() <= 0 {
		return fmt.Errorf("use a size such as 20Gi")
	}
	*b.value = size.Value()
	return nil
}
