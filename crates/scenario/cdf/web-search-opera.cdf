# Flow sizes of a web search cluster, read off a figure of the DCTCP paper (SIGCOMM 2010) by the authors of Opera (NSDI 2020).
# Table from TritonNetworking/opera-sim, Figure1_traffic/websearch.csv. Mean 1.490 MB.
# bytes, cumulative percent
4000 0
5971 7.704918
8722 15.245902
18614 19.508197
27563 30
44871 42.786885
77113 53.278689
193593 60.163934
620119 69.672131
1933313 80.163934
3147330 86.065574
4853634 90.327869
6901099 94.262295
9812271 97.213115
15759080 98.52459
28589215 100
