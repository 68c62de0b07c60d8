package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"
)

// released assembles a release of this repository. The programs are a small one, so that no other need be built.
func released(t *testing.T, out string) []program {
	t.Helper()
	self := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", self, "testdata/program.go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	s := source{dir: "../..", version: "v1.2.3", time: time.Unix(1700000000, 0).UTC(), kubernetes: "v1.0.0"}
	var programs []program
	for _, p := range platforms {
		p.file = self
		programs = append(programs, p)
	}
	if err := assemble(s, programs, out); err != nil {
		t.Fatal(err)
	}
	return programs
}

func TestRelease(t *testing.T) {
	out := t.TempDir()
	programs := released(t, out)
	t.Run("is complete, and its checksums are right", func(t *testing.T) {
		check := exec.Command("sha256sum", "--check", "--strict", sumsFile)
		check.Dir = out
		listed, err := check.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, listed)
		}
		for _, name := range []string{
			"trainyard_1.2.3_linux_amd64.tar.gz", "trainyard_1.2.3_linux_arm64.tar.gz", "trainyard_1.2.3_darwin_amd64.tar.gz", "trainyard_1.2.3_darwin_arm64.tar.gz",
			"trainyard_1.2.3_windows_amd64.zip", "trainyard_1.2.3_amd64.deb", "trainyard_1.2.3_arm64.deb", "trainyard_1.2.3.oci.tar", "trainyard-operator_1.2.3.oci.tar",
			"trainyard-chart_1.2.3.tgz", "trainyard-krew.yaml", "trainyard_1.2.3_linux_amd64.spdx.json", "trainyard-operator_1.2.3_linux_arm64.spdx.json",
		} {
			if !strings.Contains(string(listed), name+": OK") {
				t.Errorf("no %s in\n%s", name, listed)
			}
		}
	})
	t.Run("has a package that dpkg reads", func(t *testing.T) {
		deb := filepath.Join(out, "trainyard_1.2.3_arm64.deb")
		fields, err := exec.Command("dpkg-deb", "--show", "--showformat=${Package} ${Version} ${Architecture}", deb).CombinedOutput()
		if err != nil || string(fields) != "trainyard 1.2.3 arm64" {
			t.Errorf("it is %s (%v)", fields, err)
		}
		to := t.TempDir()
		if text, err := exec.Command("dpkg-deb", "--extract", deb, to).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		same(t, filepath.Join(to, "usr/bin/kubectl-trainyard"), programs[0].file)
	})
	t.Run("has images for both architectures", func(t *testing.T) {
		for _, names := range [][]string{{"trainyard"}, {"trainyard-operator", "trainyard-agent", "trainyard-recorder"}} {
			index := unpacked(t, filepath.Join(out, names[0]+"_1.2.3.oci.tar"))
			if err := validate.Index(index); err != nil {
				t.Errorf("%s: %v", names[0], err)
			}
			for _, arch := range []string{"amd64", "arm64"} {
				checkImage(t, index, names, arch, programs[0].file)
			}
		}
	})
	t.Run("has a chart that Helm reads", func(t *testing.T) {
		chart, err := loader.LoadFile(filepath.Join(out, "trainyard-chart_1.2.3.tgz"))
		if err != nil || chart.Metadata.Version != "1.2.3" || chart.Metadata.AppVersion != "v1.2.3" || len(chart.CRDObjects()) == 0 {
			t.Errorf("it is %+v (%v)", chart, err)
		}
	})
	t.Run("has the checksums of the archives for krew", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(out, "trainyard-krew.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var plugin struct {
			Spec struct {
				Platforms []struct{ URI, Sha256 string }
			}
		}
		if err := yaml.Unmarshal(text, &plugin); err != nil || len(plugin.Spec.Platforms) != 5 {
			t.Fatalf("%v in\n%s", err, text)
		}
		sums, err := os.ReadFile(filepath.Join(out, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range plugin.Spec.Platforms {
			if !strings.Contains(string(sums), p.Sha256+"  "+filepath.Base(p.URI)+"\n") {
				t.Errorf("%s has not the sum %s", p.URI, p.Sha256)
			}
		}
	})
	t.Run("is equal when it is assembled again", func(t *testing.T) {
		again := t.TempDir()
		released(t, again)
		same(t, filepath.Join(again, sumsFile), filepath.Join(out, sumsFile))
	})
}

func TestListOfModules(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("this test has no list of modules")
	}
	list := sbomOf(source{version: "v1.2.3"}, platforms[0], nil, info)
	if len(list.Packages) != len(info.Deps)+2 || len(list.Relationships) != len(list.Packages) {
		t.Errorf("%d packages and %d relationships, and the program has %d modules", len(list.Packages), len(list.Relationships), len(info.Deps))
	}
	ids := map[string]bool{}
	registry := false
	for _, p := range list.Packages {
		if ids[p.ID] {
			t.Errorf("%s is there twice", p.ID)
		}
		ids[p.ID] = true
		registry = registry || len(p.Refs) == 1 && p.Refs[0].Locator == "pkg:golang/github.com/google/go-containerregistry@v0.20.6"
	}
	if !registry {
		t.Error("a module is missing")
	}
}

// same checks that two files have one content.
func same(t *testing.T, one, other string) {
	t.Helper()
	a, err := os.ReadFile(one)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a, b) {
		t.Errorf("%s and %s differ", one, other)
	}
}

// unpacked is the index in an OCI archive.
func unpacked(t *testing.T, archive string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	if text, err := exec.Command("tar", "-xf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	outer, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := outer.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %+v (%v)", manifest, err)
	}
	index, err := outer.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// checkImage checks that an index has an image for an architecture, with these programs in it, of which the first one is run.
func checkImage(t *testing.T, index v1.ImageIndex, names []string, arch, file string) {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(manifest.Manifests, func(m v1.Descriptor) bool { return m.Platform != nil && m.Platform.Architecture == arch })
	if at < 0 {
		t.Fatalf("%s has no image for %s", names[0], arch)
	}
	image, err := index.Image(manifest.Manifests[at].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Architecture != arch || config.Config.Entrypoint[0] != "/"+names[0] || config.Config.User != "65532:65532" {
		t.Errorf("%s for %s has %+v (%v)", names[0], arch, config, err)
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content := contentOf(t, image)
	for _, name := range names {
		if !bytes.Equal(content[name], want) {
			t.Errorf("%s of %s for %s is not the program", name, names[0], arch)
		}
	}
}

// contentOf are the files of an image.
func contentOf(t *testing.T, image v1.Image) map[string][]byte {
	t.Helper()
	files, all := tar.NewReader(mutate.Extract(image)), map[string][]byte{}
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if all[header.Name], err = io.ReadAll(files); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVersionsOfPackages(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3~rc.1", "0.1.0-5-gabc": "0.1.0~5-gabc", "abc1234": "0~abc1234"} {
		if got := debVersion(version); got != want {
			t.Errorf("%s is %s for dpkg, want %s", version, got, want)
		}
	}
	chart := string(versioned([]byte("name: x\nversion: 0.0.0\nappVersion: \"1\"\n"), source{version: "abc1234"}))
	if want := "name: x\nversion: 0.0.0-abc1234\nappVersion: \"abc1234\"\n"; chart != want {
		t.Errorf("the chart has\n%s", chart)
	}
}
