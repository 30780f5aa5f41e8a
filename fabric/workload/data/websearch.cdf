# Flow sizes of a web search cluster, as used by the HPCC evaluation (Li et al., SIGCOMM 2019); after Alizadeh et al., DCTCP, SIGCOMM 2010.
# bytes  percent of flows that are not larger; linear between the points
0 0
10000 15
20000 20
30000 30
50000 40
80000 53
200000 60
1000000 70
2000000 80
5000000 90
10000000 97
30000000 100
