package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// images are the programs of each image. The first one is run. The operator's has the agent, which pods of MPI jobs take from it, and the recorder.
var images = [][]string{{commandLine}, {operator, agent, recorder}}

// writeImages writes each image for all its Linux platforms, as an OCI archive: a tar of an image layout.
func writeImages(s source, programs []program, out string) error {
	for _, names := range images {
		name, index := names[0], mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, p := range programs {
			if p.name != name || p.os != "linux" {
				continue
			}
			image, err := imageOf(s, p, with(programs, p, names))
			if err != nil {
				return fmt.Errorf("building the image of %s for %s: %w", p.name, p.arch, err)
			}
			index = mutate.AppendManifests(index, mutate.IndexAddendum{
				Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
			})
		}
		if err := writeLayout(s, index, filepath.Join(out, fmt.Sprintf("%s_%s.oci.tar", name, s.number()))); err != nil {
			return fmt.Errorf("writing the image of %s: %w", name, err)
		}
	}
	return nil
}

// with are the programs of these names that run where p does.
func with(programs []program, p program, names []string) []program {
	return slices.DeleteFunc(slices.Clone(programs), func(other program) bool {
		return other.os != p.os || other.arch != p.arch || !slices.Contains(names, other.name)
	})
}

// imageOf has these programs and nothing else, and runs p. The operator needs no certificates: the cluster provides that of its API
// server. It runs as a user without rights, as in the Dockerfile.
func imageOf(s source, p program, programs []program) (v1.Image, error) {
	files := []file{{"tmp", 0, nil}}
	for _, one := range programs {
		content, err := os.ReadFile(one.file)
		if err != nil {
			return nil, err
		}
		files = append(files, file{one.name, 0o755, content})
	}
	data, err := tarred(s.time, files...)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: s.time}, CreatedBy: "trainyard-release"}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: s.time}
	config.Config = v1.Config{
		Entrypoint: []string{"/" + p.name}, User: "65532:65532", WorkingDir: "/",
		Labels: map[string]string{"org.opencontainers.image.title": p.name, "org.opencontainers.image.version": s.version},
	}
	return mutate.ConfigFile(image, config)
}

// writeLayout writes an index as the layout that registries' tools read, in one file.
func writeLayout(s source, index v1.ImageIndex, to string) error {
	dir, err := os.MkdirTemp("", "trainyard-layout-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // only temporary files
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": s.version})); err != nil {
		return err
	}
	var files []file
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		inside, err := filepath.Rel(dir, name)
		if err != nil || entry.IsDir() {
			files = append(files, file{inside, 0, nil})
			return err
		}
		content, err := os.ReadFile(name)
		files = append(files, file{inside, 0o644, content})
		return err
	})
	if err != nil {
		return err
	}
	data, err := tarred(s.time, files...)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}
