# Message sizes of the Solar storage network (Miao et al., SIGCOMM 2022), as used by the ConWeave evaluation (Song et al., SIGCOMM 2023).
# bytes  percent of flows that are not larger; linear between the points
0 0
4095 0.001
4096 30
16383 35
16384 50
65535 60
65536 95
262144 100
