# Flow sizes of a web search cluster: Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010.
# Table as in alibaba-edu/High-Precision-Congestion-Control, traffic_gen/WebSearch_distribution.txt; HKUST-SING/TrafficGenerator
# has the same numbers in conf/DCTCP_CDF.txt. Mean 1.711 MB.
# bytes, cumulative percent
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
