package cluster

// CgroupName lets tests look for the control groups of a data directory.
var CgroupName = cgroupName
