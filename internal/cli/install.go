package cli

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/trainyard/trainyard/api/crds"
	"github.com/trainyard/trainyard/config"
	"github.com/trainyard/trainyard/internal/definition"
	"github.com/trainyard/trainyard/internal/document"
)

// install is `trainyard install`: the kinds and the operator of config/, for a cluster.
type install struct {
	target
	image        string
	dryRun       bool
	crdOnly      bool
	besideOthers bool
	mpi          bool
}

func installCommand() *cobra.Command {
	i := install{target: target{remote: true}}
	cmd := &cobra.Command{
		Use:   "install --image REGISTRY/trainyard-operator:TAG",
		Short: "Install the kinds of jobs and the operator on a cluster",
		Long: `Install the kinds of jobs and the operator on the cluster of the current context, or update them. The local cluster
has them already. The operator runs in namespace trainyard-system. You need the rights of a cluster administrator.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return i.run(cmd) },
	}
	addCluster(cmd, &i.target, "the kubeconfig of the cluster (default: KUBECONFIG, else ~/.kube/config)")
	cmd.Flags().StringVar(&i.image, "image", "", "the operator's image, which you have built and pushed")
	cmd.Flags().BoolVar(&i.crdOnly, "crds-only", false, "only the kinds, no operator")
	cmd.Flags().BoolVar(&i.dryRun, "dry-run", false, "print the manifests and do nothing")
	cmd.Flags().BoolVar(&i.mpi, "mpi", false, "let the operator create the Secrets with SSH keys that MPIJobs need")
	cmd.Flags().BoolVar(&i.besideOthers, "beside-others", false, "install although Training Operator or Kubeflow Trainer runs the same kinds of jobs")
	return cmd
}

func (i *install) run(cmd *cobra.Command) error {
	if i.image == "" && !i.crdOnly {
		return usageError{errors.New("the operator's image is missing: use --image, or --crds-only to install only the kinds")}
	}
	text, err := i.build()
	if err != nil {
		return err
	}
	out := &printer{Writer: cmd.OutOrStdout()}
	if i.dryRun {
		out.printf("%s", text)
		return out.err
	}
	docs, err := document.Parse("config", text)
	if err != nil {
		return err
	}
	y, err := i.open()
	if err != nil {
		return err
	}
	access, err := i.config()
	if err != nil {
		return err
	}
	if !i.besideOthers {
		if err := refuseOtherOperators(cmd.Context(), y); err != nil {
			return i.explain(err)
		}
	}
	slices.SortStableFunc(docs, func(a, b *document.Document) int { return rank(a.Object) - rank(b.Object) })
	for n, doc := range docs {
		if err := y.Apply(cmd.Context(), doc.Object); apierrors.IsForbidden(err) {
			return fmt.Errorf("%w; installing needs the rights of a cluster administrator", err)
		} else if err != nil {
			return i.explain(err)
		}
		out.printf("%s %s\n", strings.ToLower(doc.Object.GetKind()), doc.Object.GetName())
		if n+1 < len(docs) && (rank(doc.Object) > definitions || rank(docs[n+1].Object) <= definitions) {
			continue
		}
		if err := definition.Await(cmd.Context(), access); err != nil {
			return i.explain(err)
		}
	}
	created, err := definition.OfferJobSet(cmd.Context(), access)
	if err != nil {
		return i.explain(err)
	}
	if created {
		out.printf("customresourcedefinition jobsets.jobset.x-k8s.io, for Kueue\n")
	}
	if i.crdOnly {
		out.printf("The kinds of jobs are installed.\n")
		return out.err
	}
	out.printf("The kinds of jobs are installed, and the operator is starting in namespace trainyard-system.\n")
	return out.err
}

// definitions is the rank of the kinds. Objects of a higher rank may have these kinds.
const definitions = 1

// rank is the order of installation: what others need comes first.
func rank(obj *unstructured.Unstructured) int {
	switch obj.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition", "ServiceAccount":
		return definitions
	case "Deployment":
		return 3
	}
	return 2
}

// build is the YAML of everything to install.
func (i *install) build() (string, error) {
	memory := filesys.MakeFsInMemory()
	if err := errors.Join(copyFiles(memory, config.Files, "/config/"), copyFiles(memory, crds.Files, "/api/crds/")); err != nil {
		return "", fmt.Errorf("reading the manifests: %w", err)
	}
	var kinds strings.Builder
	entries, err := crds.Files.ReadDir(".")
	if err != nil {
		return "", fmt.Errorf("reading the manifests: %w", err)
	}
	for _, e := range entries {
		if strings.Contains(e.Name(), "_") {
			fmt.Fprintf(&kinds, "- %s\n", e.Name())
		}
	}
	name, tag := i.image, ""
	if colon := strings.LastIndex(i.image, ":"); colon > strings.LastIndex(i.image, "/") {
		name, tag = i.image[:colon], i.image[colon+1:]
	}
	resources := "../config/default, ../config/runtimes"
	if i.mpi {
		resources += ", ../config/mpi"
	}
	for file, text := range map[string]string{
		"/api/crds/kustomization.yaml": "resources:\n" + kinds.String(),
		"/install/kustomization.yaml":  fmt.Sprintf("resources: [%s]\nimages: [{name: trainyard-operator, newName: %q, newTag: %q}]\n", resources, name, tag),
	} {
		if err := memory.WriteFile(file, []byte(text)); err != nil {
			return "", fmt.Errorf("reading the manifests: %w", err)
		}
	}
	folder := "/install"
	if i.crdOnly {
		folder = "/config/crd"
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, folder)
	if err != nil {
		return "", fmt.Errorf("building the manifests: %w", err)
	}
	text, err := built.AsYaml()
	return string(text), err
}

func copyFiles(memory filesys.FileSystem, files embed.FS, to string) error {
	return fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return memory.WriteFile(to+path, text)
	})
}
