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
package ns3
