package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	cri "k8s.io/cri-api/pkg/apis"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/kubelet"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletpods "k8s.io/kubernetes/pkg/kubelet/config"
	"k8s.io/kubernetes/pkg/kubelet/container"
	"k8s.io/kubernetes/pkg/kubelet/server"
	kubelettypes "k8s.io/kubernetes/pkg/kubelet/types"
	"k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/hostpath"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
)

// node says how to run kubelet in this process.
type node struct {
	nodeSpec
	dns      net.IP
	dir      string // kubelet's own folder
	caFile   string // of the authority of its clients
	certFile string // what it serves with
	keyFile  string
	client   *rest.Config
	runtime  cri.RuntimeService
	images   cri.ImageManagerService
	gpus     *gpuManager
	machine  machine
}

// logsPath is the directory of the pods' logs in kubelet's own folder.
func logsPath(kubelet string) string { return filepath.Join(kubelet, "logs") }

func (n *node) ip() net.IP { return n.address().AsSlice() }

const (
	kubeletPort   = 10250
	clusterDomain = "cluster.local"
	maxPods       = 1000
	logSize       = 50 << 20 // of a container's log, of which kubelet keeps five
	// diskUsePeriod is how often kubelet counts what is in the volumes of each pod: after this time, or up to twice as long. It reads
	// every directory of an emptyDir for that. Kubernetes' own default, a minute, lets a person wait for the effect of a limit.
	diskUsePeriod = 20 * time.Second
)

// start runs kubelet until ctx ends.
func (n *node) start(ctx context.Context) error {
	config, err := n.config()
	if err != nil {
		return err
	}
	flags := options.NewKubeletFlags()
	flags.RootDirectory = n.dir
	flags.HostnameOverride = n.Name
	flags.NodeIP = n.ip().String()
	flags.MaxPerPodContainerCount = 2 // `kubectl logs --previous` answers for a finished pod too
	flags.NodeLabels = n.Labels
	deps, err := n.dependencies(config)
	if err != nil {
		return err
	}
	s := &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *config}
	if err := options.ValidateKubeletServer(s); err != nil {
		return fmt.Errorf("configuring kubelet: %w", err)
	}
	return n.run(ctx, s, deps)
}

// run does what kubelet's own command does, but for the API by which agents list a node's devices: the path of its socket may
// have 107 bytes only, and data directories can be deep.
func (n *node) run(ctx context.Context, s *options.KubeletServer, deps *kubelet.Dependencies) error {
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
	deps.OSInterface = container.RealOS{}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	deps.Recorder = broadcaster.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.Name})
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: deps.EventClient.Events("")})
	deps.PodConfig = kubeletpods.NewPodConfig(deps.Recorder, deps.PodStartupLatencyTracker)
	pods := atMostEvery(podUpdatePeriod, deps.PodConfig.Channel(ctx, kubelettypes.ApiserverSource))
	k, err := kubelet.NewMainKubelet(ctx, &s.KubeletConfiguration, deps, &s.ContainerRuntimeOptions,
		n.Name, types.NodeName(n.Name), []net.IP{n.ip()}, s.ProviderID, s.CloudProvider, s.CertDirectory, s.RootDirectory, s.PodLogsDir,
		s.ImageCredentialProviderConfigPath, s.ImageCredentialProviderBinDir, s.RegisterNode, s.RegisterWithTaints, s.AllowedUnsafeSysctls,
		s.ExperimentalMounterPath, s.KernelMemcgNotification, s.ExperimentalNodeAllocatableIgnoreEvictionThreshold,
		s.MinimumGCAge, s.MaxPerPodContainerCount, s.MaxContainerCount, s.NodeLabels, s.NodeStatusMaxImages, false)
	if err != nil {
		return fmt.Errorf("starting kubelet: %w", err)
	}
	k.BirthCry()
	k.StartGarbageCollection(ctx)
	go k.Run(ctx, withUsers(deps.PodConfig.Updates()))
	go func() {
		known := func() bool { _, err := k.GetNode(ctx); return err == nil }
		_ = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) { return known(), nil })
		kubeletpods.NewSourceApiserver(klog.FromContext(ctx), deps.KubeClient, types.NodeName(n.Name), known, pods)
	}()
	go k.ListenAndServe(ctx, &s.KubeletConfiguration, deps.TLSConfig, deps.Auth, deps.TracerProvider)
	return nil
}

func (n *node) config() (*kubeletconfig.KubeletConfiguration, error) {
	c, err := options.NewKubeletConfiguration()
	if err != nil {
		return nil, fmt.Errorf("configuring kubelet: %w", err)
	}
	logs := logsPath(n.dir)
	kubelet.ContainerLogsDir = filepath.Join(n.dir, "containers") // else it makes links in the machine's /var/log
	for _, dir := range []string{logs, kubelet.ContainerLogsDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("creating a folder for logs: %w", err)
		}
	}
	resolv := filepath.Join(n.dir, "resolv.conf")
	if err := os.WriteFile(resolv, resolverConfig(n.dns, machineResolver()), 0o600); err != nil {
		return nil, fmt.Errorf("writing resolv.conf: %w", err)
	}
	c.ContainerRuntimeEndpoint = "unix:///in-process"
	c.PodLogsDir = logs
	c.ResolverConfig = resolv
	c.ClusterDNS = []string{n.dns.String()}
	c.ClusterDomain = clusterDomain
	c.Address = n.ip().String()
	c.Port = kubeletPort
	c.HealthzPort = 0
	c.ReadOnlyPort = 0
	c.EnableServer = true
	c.Authentication.X509.ClientCAFile = n.caFile
	c.Authentication.Webhook.Enabled = false
	c.Authentication.Anonymous.Enabled = false
	c.Authorization.Mode = kubeletconfig.KubeletAuthorizationModeAlwaysAllow
	c.MaxPods = maxPods
	c.PodPidsLimit = -1
	c.SerializeImagePulls = false
	c.RegistryPullQPS = 0
	c.EventRecordQPS = 0
	c.KubeAPIQPS, c.KubeAPIBurst = 1000, 2000
	c.ConfigMapAndSecretChangeDetectionStrategy = kubeletconfig.WatchChangeDetectionStrategy
	c.SyncFrequency.Duration = 10 * time.Second // how long a changed configMap may take to show in its volume
	c.NodeStatusUpdateFrequency.Duration = 10 * time.Second
	c.NodeStatusReportFrequency.Duration = time.Minute
	c.CgroupsPerQOS = false
	c.EnforceNodeAllocatable = nil
	c.LocalStorageCapacityIsolation = true // a pod is evicted for its own limit on disk space
	c.VolumeStatsAggPeriod.Duration = diskUsePeriod
	c.MakeIPTablesUtilChains = false
	c.FailSwapOn = false
	c.FailCgroupV1 = false
	c.EvictionHard = map[string]string{} // nothing is evicted for a full disk: the machine is a person's
	c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = 100, 99
	c.EnableControllerAttachDetach = false
	c.ContainerLogMaxSize = strconv.Itoa(logSize)
	c.ContainerLogMaxFiles = 5
	c.ContainerLogMonitorInterval.Duration = 3 * time.Second // a container with a full log waits for kubelet to look
	c.ProtectKernelDefaults = false
	c.RegisterNode = true
	c.FeatureGates = featureGates()
	return c, nil
}

func (n *node) dependencies(config *kubeletconfig.KubeletConfiguration) (*kubelet.Dependencies, error) {
	binary := rest.AddUserAgent(rest.CopyConfig(n.client), "kubelet")
	binary.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(binary)
	if err != nil {
		return nil, err
	}
	auth, _, err := app.BuildAuth("", client, *config)
	if err != nil {
		return nil, fmt.Errorf("setting up kubelet's authentication: %w", err)
	}
	disk, err := n.machine.RootFsInfo()
	if err != nil {
		return nil, err
	}
	n.gpus.disk = disk.Capacity
	mounter := mount.New("")
	return &kubelet.Dependencies{
		Auth:                      auth,
		TLSOptions:                &server.TLSOptions{CertFile: n.certFile, KeyFile: n.keyFile, ClientCAFile: n.caFile},
		KubeClient:                client,
		HeartbeatClient:           client,
		EventClient:               client.CoreV1(),
		OnHeartbeatFailure:        func() {},
		RemoteRuntimeService:      n.runtime,
		RemoteImageService:        n.images,
		CAdvisorInterface:         n.machine,
		ContainerManager:          n.gpus,
		Mounter:                   mounter,
		Subpather:                 subpath.New(mounter),
		HostUtil:                  hostutil.NewHostUtil(),
		OOMAdjuster:               oom.NewFakeOOMAdjuster(), // the runtime sets scores; kubelet's own stays as it is
		VolumePlugins:             volumePlugins(),
		PodStartupLatencyTracker:  util.NewPodStartupLatencyTracker(),
		NodeStartupLatencyTracker: util.NewNodeStartupLatencyTracker(klog.Background()),
		TracerProvider:            noop.NewTracerProvider(),
	}, nil
}

// volumePlugins are the kinds of volumes that need nothing but this machine.
func volumePlugins() []volume.VolumePlugin {
	var all []volume.VolumePlugin
	for _, plugins := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), configmap.ProbeVolumePlugins(), secret.ProbeVolumePlugins(), projected.ProbeVolumePlugins(),
		downwardapi.ProbeVolumePlugins(), hostpath.ProbeVolumePlugins(volume.VolumeConfig{}),
	} {
		all = append(all, plugins...)
	}
	return all
}

// issueServing issues the certificate that a node's kubelet serves with.
func issueServing(p *pki, s nodeSpec) (keyPair, error) {
	file := "kubelet"
	if !s.first() {
		file += "-" + s.Name
	}
	return p.server(file, []string{s.Name, "localhost"}, []net.IP{s.address().AsSlice(), net.IPv4(127, 0, 0, 1)})
}

// nodeReady reports whether kubelet has said since a time that the node is ready: what an earlier run said does not count.
func nodeReady(n *corev1.Node, since time.Time) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue && !c.LastHeartbeatTime.Time.Before(since.Truncate(time.Second))
		}
	}
	return false
}
