//go:build linux

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trainyard/trainyard/internal/kubeconfig"
)

// sharedKubeconfig is a kubeconfig of a person, into which `trainyard up` merges the local cluster under a name of its own. It may have
// other clusters, be a symbolic link, and be edited by other programs at the same time.
type sharedKubeconfig struct{ file, name, dataDir string }

// Extensions of our context.
const (
	// previousContext keeps the current-context from before. It is in the file, so that the next `up` can still put it back if this one
	// is killed.
	previousContext = "trainyard.dev/previous-context"
	// dataDirOfContext says which data directory the cluster is of: two of them may have the same name, and so the same context.
	dataDirOfContext = "trainyard.dev/data-dir"
)

// kubeconfigLockTimeout is how long another program may hold the lock of a kubeconfig. kubectl holds it for milliseconds.
const kubeconfigLockTimeout = 5 * time.Second

// check refuses, before a cluster is started, a file that is not a kubeconfig, and one in which another cluster has our name.
func (k sharedKubeconfig) check() error {
	config, _, err := k.read()
	if err != nil {
		return usageError{err}
	}
	return k.checkName(config)
}

// checkName refuses a file in which another cluster has our name. That of a local cluster which does not run may be replaced.
func (k sharedKubeconfig) checkName(config *clientcmdapi.Config) error {
	if config.Contexts[k.name] == nil {
		return nil
	}
	if !kubeconfig.IsLocal(*config, k.name) {
		return usageError{fmt.Errorf("%s has a context %s of another cluster: rename that context, or name another file", k.file, k.name)}
	}
	if dir := extensionOf(config, k.name, dataDirOfContext); dir != "" && dir != k.dataDir && clusterRuns(dir) {
		return usageError{fmt.Errorf("%s has a context %s of the local cluster of %s, which is running: name another file, or stop that cluster with `trainyard down --data-dir %[3]s`", k.file, k.name, dir)}
	}
	return nil
}

// merge adds the cluster of the kubeconfig source and makes it the current context.
func (k sharedKubeconfig) merge(source string) error {
	ours, err := clientcmd.LoadFromFile(source)
	if err != nil {
		return fmt.Errorf("reading the cluster's kubeconfig: %w", err)
	}
	from := ours.Contexts[ours.CurrentContext]
	return k.edit(func(config *clientcmdapi.Config) error {
		if err := k.checkName(config); err != nil {
			return err // another `up` was faster
		}
		k.unlink(config)
		context := clientcmdapi.NewContext()
		context.Cluster, context.AuthInfo = k.name, k.name
		if old := config.Contexts[k.name]; old != nil {
			context.Namespace = old.Namespace
		}
		setExtension(context, dataDirOfContext, k.dataDir)
		if config.CurrentContext != k.name {
			setExtension(context, previousContext, config.CurrentContext)
		}
		config.Clusters[k.name], config.AuthInfos[k.name], config.Contexts[k.name] = ours.Clusters[from.Cluster], ours.AuthInfos[from.AuthInfo], context
		config.CurrentContext = k.name
		return nil
	})
}

// leave puts the previous current-context back, unless the person has chosen another since. The entries stay, for the next `up`. If there
// was no current-context before, ours stays current: verbs then say that the cluster is not running, and show what was recorded.
func (k sharedKubeconfig) leave() error {
	return k.edit(func(config *clientcmdapi.Config) error {
		k.unlink(config)
		return nil
	})
}

// unlink puts the context from before in the place of ours: as the current one, and as the previous one of another local cluster in the
// file.
func (k sharedKubeconfig) unlink(config *clientcmdapi.Config) {
	previous := extensionOf(config, k.name, previousContext)
	if config.Contexts[previous] == nil {
		return // there was none, or it is gone
	}
	if config.CurrentContext == k.name {
		config.CurrentContext = previous
	}
	for name, context := range config.Contexts {
		if extensionOf(config, name, previousContext) == k.name {
			setExtension(context, previousContext, previous)
		}
	}
	delete(config.Contexts[k.name].Extensions, previousContext)
}

// extensionOf is a text that we keep at a context, empty if there is none.
func extensionOf(config *clientcmdapi.Config, name, extension string) (text string) {
	if context := config.Contexts[name]; context != nil {
		if kept, ok := context.Extensions[extension].(*runtime.Unknown); ok {
			_ = json.Unmarshal(kept.Raw, &text) // a value that is not ours is no text
		}
	}
	return text
}

// setExtension keeps a text at a context, unless it is empty.
func setExtension(context *clientcmdapi.Context, extension, text string) {
	if raw, err := json.Marshal(text); err == nil && text != "" { // a text is always encoded
		context.Extensions[extension] = &runtime.Unknown{Raw: raw, ContentType: runtime.ContentTypeJSON}
	}
}

// edit changes the file in place, so that links to it, its owner and its mode stay. It holds the lock that kubectl and kind use.
func (k sharedKubeconfig) edit(change func(*clientcmdapi.Config) error) error {
	if err := os.MkdirAll(filepath.Dir(k.file), 0o700); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	_, file, err := k.read()
	if err != nil {
		return err
	}
	unlock, err := lockKubeconfig(file)
	if err != nil {
		return err
	}
	defer unlock()
	config, file, err := k.read()
	if err != nil {
		return err
	}
	if err := change(config); err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil { // an existing file keeps its mode
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// read is the content of the file, empty if it does not exist, and the file that it really is.
func (k sharedKubeconfig) read() (*clientcmdapi.Config, string, error) {
	file, err := filepath.EvalSymlinks(k.file)
	if errors.Is(err, os.ErrNotExist) {
		return clientcmdapi.NewConfig(), k.file, nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig %s: %w", k.file, err)
	}
	return config, file, nil
}

// lockKubeconfig creates the lock file that client-go uses for kubeconfigs.
func lockKubeconfig(file string) (unlock func(), err error) {
	name := file + ".lock"
	for deadline := time.Now().Add(kubeconfigLockTimeout); ; time.Sleep(10 * time.Millisecond) {
		lock, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0)
		switch {
		case err == nil:
			_ = lock.Close()
			return func() { _ = os.Remove(name) }, nil
		case !errors.Is(err, os.ErrExist):
			return nil, fmt.Errorf("locking the kubeconfig: %w", err)
		case time.Now().After(deadline):
			return nil, fmt.Errorf("another program holds the lock of the kubeconfig; if none does, delete %s", name)
		}
	}
}

// withoutOperator is the extension of a local cluster that runs no operator, so no run can join it.
const withoutOperator = "trainyard.dev/without-operator"

// markWithoutOperator notes in the local cluster's own kubeconfig that it runs no operator.
func markWithoutOperator(file string) error {
	return sharedKubeconfig{file: file}.edit(func(config *clientcmdapi.Config) error {
		for _, c := range config.Clusters {
			c.Extensions[withoutOperator] = &runtime.Unknown{Raw: []byte("{}"), ContentType: runtime.ContentTypeJSON}
		}
		return nil
	})
}

// contextName is the name of the local cluster of a data directory in a person's kubeconfig.
func contextName(dataDir string) string {
	if dir, err := defaultDataDir(); err == nil && dir == dataDir {
		return "trainyard"
	}
	return "trainyard-" + filepath.Base(dataDir)
}
