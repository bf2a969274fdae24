# RPC sizes of Alibaba's storage network Solar: Miao et al., From Luna to Solar, SIGCOMM 2022.
# Table from conweave-project/conweave-ns3, traffic_gen/Solar2022.txt.
# bytes, cumulative percent
0 0
4095 0.001
4096 30
16383 35
16384 50
65535 60
65536 95
262144 100
