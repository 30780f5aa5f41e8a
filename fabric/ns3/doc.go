// Package ns3 runs the published inputs of HPCC's ns-3 simulator (Li et al.,
// SIGCOMM 2019) unchanged: its topology and flow files go in, its file of
// completion times comes out, and between them stand this project's own switch
// and host, in virtual time, configured as that simulator is.
//
//	ParseTopology, Topology.Fabric   the topology file
//	ParseFlows                       the flow file
//	Profile                          every constant of that simulator, in one place
//	Run                              the run
//	WriteFCT, ParseFCT               the file of completion times
//	Summarize                        what the numbers come to
//
// The three formats are plain columns of numbers without comments; what reads
// them here is strict, and errors name file and line.
//
// Flows take the paths that the simulator's hashes choose: each is given UDP
// source ports by which the switches' own hashes decide the same.
//
// What stays different: which frames are marked where marking is by chance; the
// order of events at one nanosecond (here by the number of the link, there by when
// each was planned); hosts that serve a paced flow at its time, where that
// simulator's wait for the next event if another flow of the host is held back by
// its window; pause frames of switches are 60 bytes, there 43. Feedback enlarges
// such differences until two runs agree as a whole only and not flow by flow, as two
// runs of that simulator do one of whose flows starts a nanosecond later.
package ns3
