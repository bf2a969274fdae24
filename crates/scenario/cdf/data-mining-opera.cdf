# Flow sizes of a data mining cluster: Greenberg et al., VL2, SIGCOMM 2009, as the authors of Opera (NSDI 2020) tabulate them.
# Table from TritonNetworking/opera-sim, Figure1_traffic/datamining.csv. Mean 5.04 MB.
# bytes, cumulative percent
100 0
180 8.5
250 14
560 33
900 47
1100 55
1870 65
3160 70
10000 80
100001 87.4
400000 90
1850000 95
10000000 97
30000000 98
100000000 99
250000000 99.5
1000000000 100
