package v1alpha1

// PodGroupPolicy selects the scheduler that places the pods of the training together, or none of them. With neither set, it is the first
// that the cluster has.
// +kubebuilder:validation:XValidation:rule="!has(self.coscheduling) || !has(self.volcano)",message="podGroupPolicy names two schedulers: keep coscheduling or volcano"
type PodGroupPolicy struct {
	// coscheduling is the scheduler plugin of that name.
	// +optional
	Coscheduling *CoschedulingPodGroupPolicySource `json:"coscheduling,omitempty"`

	// volcano is the Volcano scheduler.
	// +optional
	Volcano *VolcanoPodGroupPolicySource `json:"volcano,omitempty"`
}

// CoschedulingPodGroupPolicySource configures the plugin.
type CoschedulingPodGroupPolicySource struct {
	// scheduleTimeoutSeconds is how long the scheduler may try to place the gang. Defaults to 60.
	// +kubebuilder:default=60
	// +optional
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// VolcanoPodGroupPolicySource configures Volcano.
type VolcanoPodGroupPolicySource struct {
	// networkTopology is how close to each other the pods must be placed.
	// +optional
	NetworkTopology *NetworkTopology `json:"networkTopology,omitempty"`
}

// NetworkTopology is how close to each other the pods must be placed.
type NetworkTopology struct {
	// mode is hard, which must be met, or soft.
	// +kubebuilder:validation:Enum=hard;soft
	// +kubebuilder:default=hard
	// +optional
	Mode string `json:"mode,omitempty"`

	// highestTierAllowed is the highest tier of the network that may lie between two pods.
	// +optional
	HighestTierAllowed *int `json:"highestTierAllowed,omitempty"`
}
