package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/trainyard/trainyard/api/crds"
	kubeflowv1 "github.com/trainyard/trainyard/api/kubeflow/v1"
	"github.com/trainyard/trainyard/internal/controller"
	"github.com/trainyard/trainyard/internal/conversion"
	"github.com/trainyard/trainyard/internal/document"
	"github.com/trainyard/trainyard/internal/kinds"
	"github.com/trainyard/trainyard/internal/kinds/kubeflow"
	"github.com/trainyard/trainyard/internal/lint"
	"github.com/trainyard/trainyard/internal/manifest"
	"github.com/trainyard/trainyard/internal/runtimes"
	"github.com/trainyard/trainyard/internal/simulation"
)

const root = "../../.."

// places are where a kind that is listed in package kinds must be.
var places = []struct {
	name  string
	check func(kinds.Adapter) error
}{
	{"api/crds: its definition (go generate ./api/crds)", func(k kinds.Adapter) error { _, err := definition(k); return err }},
	{"its API package: registered with its list (register.go)", isRegistered},
	{"its API type: a layout that agrees with the definition", layoutAgrees},
	{"config/rbac/operator.yaml: rights of the operator (go generate ./config)", func(k kinds.Adapter) error {
		return allows(k, "config/rbac/operator.yaml", "trainyard-operator", " get", " list", " watch", " delete", "/status patch", "/finalizers update")
	}},
	{"config/rbac/users.yaml: rights of those who edit (go generate ./config)", func(k kinds.Adapter) error {
		return allows(k, "config/rbac/users.yaml", "trainyard-jobs-edit", " get", " create", " update", " patch", " delete", "/status get")
	}},
	{"config/rbac/users.yaml: rights of those who view (go generate ./config)", func(k kinds.Adapter) error {
		return allows(k, "config/rbac/users.yaml", "trainyard-jobs-view", " get", " list", " watch", "/status get")
	}},
	{"charts/trainyard/crds: its definition (go generate ./api/crds)", inChart},
	{"charts/trainyard/templates/operator-rights.yaml (go generate ./config)", func(k kinds.Adapter) error {
		return mentionsResource(k, "charts/trainyard/templates/operator-rights.yaml")
	}},
	{"charts/trainyard/templates/user-roles.yaml (go generate ./config)", func(k kinds.Adapter) error {
		return mentionsResource(k, "charts/trainyard/templates/user-roles.yaml")
	}},
	{"docs: its page", func(k kinds.Adapter) error { return mentions(page(k), "# "+k.Name()+"\n") }},
	{"README.md: a link to its page", func(k kinds.Adapter) error { return mentions("README.md", "("+page(k)+")") }},
	{"README.md: a row of the table that compares operators", func(k kinds.Adapter) error { return mentionsInTable("README.md", k.Name()) }},
	{"examples: a manifest", func(k kinds.Adapter) error { _, err := manifestsOf(k, "examples"); return err }},
	{"examples/README.md: its example", isExplained},
	{"internal/kinds/testdata: a manifest and its children (go test ./internal/kinds -update)", childrenAreShown},
	{"trainyard lint: an example without errors", eachExample(isLinted)},
	{"trainyard convert: an example", eachExample(isConverted)},
	{"trainyard render: the pods of an example", eachExample(isRendered)},
	{"trainyard simulate: an example that succeeds", eachExample(isSimulated)},
}

// TestEveryKindIsEverywhere names each place where a listed kind is missing.
func TestEveryKindIsEverywhere(t *testing.T) {
	for _, kind := range kinds.All {
		for _, place := range places {
			if err := place.check(kind); err != nil {
				t.Errorf("%s is missing in %s: %v", kind.Name(), place.name, err)
			}
		}
	}
}

func definition(k kinds.Adapter) (*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crds.All()
	if err != nil {
		return nil, err
	}
	for _, crd := range all {
		if crd.Spec.Group == k.GroupVersion().Group && crd.Spec.Names.Kind == k.Name() {
			return crd, nil
		}
	}
	return nil, fmt.Errorf("there is no definition of %s", k.GroupVersion().WithKind(k.Name()))
}

func isRegistered(k kinds.Adapter) error {
	scheme, err := controller.Scheme()
	if err != nil {
		return err
	}
	list := k.GroupVersion().WithKind(k.Name() + "List")
	if !scheme.Recognizes(list) {
		return fmt.Errorf("the scheme does not know %s", list)
	}
	known, _, err := scheme.ObjectKinds(k.New())
	if err == nil && known[0] != k.GroupVersion().WithKind(k.Name()) {
		err = fmt.Errorf("the object of the kind is registered as %s", known[0])
	}
	return err
}

// layoutAgrees compares what the API type says of itself with the definition that is generated from it.
func layoutAgrees(k kinds.Adapter) error {
	kind, ok := k.(kubeflow.Kind)
	if !ok {
		return nil
	}
	crd, err := definition(k)
	if err != nil {
		return err
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	roles, ok := spec.Properties[kind.Layout.ReplicaSpecs]
	if !ok {
		return fmt.Errorf("spec has no field %s", kind.Layout.ReplicaSpecs)
	}
	rules := ""
	for _, rule := range roles.XValidations {
		rules += rule.Rule
	}
	for _, role := range kind.Layout.Roles {
		if !strings.Contains(rules, "'"+strings.ToLower(string(role))+"'") {
			return fmt.Errorf("no rule of %s allows the role %s", kind.Layout.ReplicaSpecs, role)
		}
	}
	job := kind.Empty()
	*job.Parts().ReplicaSpecs = map[kubeflowv1.ReplicaType]*kubeflowv1.ReplicaSpec{kind.Layout.Roles[0]: {}}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(job)
	if err != nil {
		return err
	}
	if _, found, _ := unstructured.NestedMap(content, "spec", kind.Layout.ReplicaSpecs); !found || job.Parts().Layout.Kind != k.Name() {
		return fmt.Errorf("the parts of the type are those of another: %s", job.Parts().Layout.Kind)
	}
	return nil
}

// allows checks the rights of a role on a kind's resource: " verb" on itself, "/subresource verb" on that.
func allows(k kinds.Adapter, file, role string, rights ...string) error {
	crd, err := definition(k)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	var has []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		var r rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &r); err != nil {
			return err
		}
		for _, rule := range r.Rules {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					if r.Name == role && slices.Contains(rule.APIGroups, crd.Spec.Group) {
						has = append(has, resource+" "+verb)
					}
				}
			}
		}
	}
	for _, right := range rights {
		if want := crd.Spec.Names.Plural + right; !slices.Contains(has, want) {
			return fmt.Errorf("%s does not allow %q", role, want)
		}
	}
	return nil
}

func inChart(k kinds.Adapter) error {
	crd, err := definition(k)
	if err != nil {
		return err
	}
	_, err = os.Stat(filepath.Join(root, "charts/trainyard/crds", crd.Spec.Group+"_"+crd.Spec.Names.Plural+".yaml"))
	return err
}

func mentionsResource(k kinds.Adapter, file string) error {
	crd, err := definition(k)
	if err != nil {
		return err
	}
	return mentions(file, crd.Spec.Names.Plural+"/status")
}

func page(k kinds.Adapter) string { return "docs/" + strings.ToLower(k.Name()) + ".md" }

func mentions(file, text string) error {
	content, err := os.ReadFile(filepath.Join(root, file))
	if err == nil && !strings.Contains(string(content), text) {
		err = fmt.Errorf("%s does not say %q", file, text)
	}
	return err
}

func mentionsInTable(file, text string) error {
	content, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(content)) {
		if first, _, ok := strings.Cut(strings.TrimPrefix(line, "|"), "|"); ok && strings.HasPrefix(line, "|") && strings.Contains(first, text) {
			return nil
		}
	}
	return fmt.Errorf("no row of a table of %s begins with %s", file, text)
}

// manifestsOf are the files below a folder with a job of a kind in them.
func manifestsOf(k kinds.Adapter, folder string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(filepath.Join(root, folder), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains("\n"+string(text), "\nkind: "+k.Name()+"\n") {
			files = append(files, path)
		}
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no file of %s has a %s", folder, k.Name())
	}
	return files, err
}

func isExplained(k kinds.Adapter) error {
	files, err := manifestsOf(k, "examples")
	if err != nil {
		return err
	}
	for _, file := range files {
		if err = mentions("examples/README.md", filepath.Base(filepath.Dir(file))); err == nil {
			return nil
		}
	}
	return err
}

func childrenAreShown(k kinds.Adapter) error {
	files, err := manifestsOf(k, "internal/kinds/testdata")
	if err != nil {
		return err
	}
	for _, file := range files {
		if _, err := os.Stat(strings.TrimSuffix(file, ".yaml") + ".children.yaml"); err != nil {
			return err
		}
	}
	return nil
}

// eachExample checks every job of a kind in the examples.
func eachExample(check func(kinds.Adapter, *document.Document, []*document.Document) error) func(kinds.Adapter) error {
	return func(k kinds.Adapter) error {
		files, err := manifestsOf(k, "examples")
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			docs, err := document.Parse(file, string(text))
			if err != nil {
				return err
			}
			for _, doc := range docs {
				if doc.Object.GetKind() != k.Name() {
					continue
				}
				if err := check(k, doc, docs); err != nil {
					return fmt.Errorf("%s: %w", file, err)
				}
			}
		}
		return nil
	}
}

func isLinted(_ kinds.Adapter, doc *document.Document, _ []*document.Document) error {
	problems, count, err := lint.Documents(context.Background(), []*document.Document{doc})
	if err != nil {
		return err
	}
	if count.Jobs != 1 {
		return fmt.Errorf("it counts as %d jobs", count.Jobs)
	}
	for _, p := range problems {
		if p.Severity == lint.Error {
			return errors.New(p.String())
		}
	}
	return nil
}

func isConverted(k kinds.Adapter, doc *document.Document, _ []*document.Document) error {
	if _, ok := k.(kubeflow.Kind); ok && !conversion.Converts(doc) {
		return errors.New("it is not converted")
	}
	_, err := conversion.ToV1(doc)
	return err
}

// read is the job of a document, with the runtime it is made from.
func read(k kinds.Adapter, doc *document.Document, file []*document.Document) (*manifest.Manifest, error) {
	obj := k.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(doc.Object.Object, obj); err != nil {
		return nil, err
	}
	obj.SetNamespace(metav1.NamespaceDefault)
	err := runtimes.Complete(k, obj, file)
	return k.Read(obj), err
}

func isRendered(k kinds.Adapter, doc *document.Document, file []*document.Document) error {
	m, err := read(k, doc, file)
	if err != nil {
		return err
	}
	if m.Total() == 0 || len(m.Job.Children) == 0 {
		return errors.New("nothing is made for it")
	}
	return nil
}

func isSimulated(k kinds.Adapter, doc *document.Document, file []*document.Document) error {
	m, err := read(k, doc, file)
	if err != nil {
		return err
	}
	life, err := simulation.Simulate(m, nil, simulation.Pace{Starts: time.Second, Stops: time.Second, Trains: time.Minute, Limit: 24 * time.Hour})
	if err == nil && !strings.Contains(life.String(), "Succeeded") && !strings.Contains(life.String(), "succeeded") {
		err = fmt.Errorf("it does not succeed:\n%s", life)
	}
	return err
}
