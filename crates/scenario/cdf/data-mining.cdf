# Flow sizes of a data mining cluster: Greenberg et al., VL2, SIGCOMM 2009.
# Table from HKUST-SING/TrafficGenerator, conf/VL2_CDF.txt. Mean 12.66 MB.
# bytes, cumulative percent
0 0
180 10
216 20
560 30
900 40
1100 50
1870 60
3160 70
10000 80
400000 90
3160000 95
100000000 98
1000000000 100
