# gnuplot -e "data='build/bench/scale.dat'; out='scale.svg'" bench/scale/plot.gp
# Columns: agents groups ranks placed settle median world switch commit messages bytes agent_messages
# leader_messages leader_load keeper_messages keeper_load busiest_load owner_messages ...
set terminal svg size 900,640 background "white" font "sans,11"
set output out
set multiplot layout 2,2
set logscale x 2
set xlabel "agents"
set key left top
set title "time until settled"
set ylabel "ms, virtual"
plot data index 0 using 1:5 with linespoints title "last group", \
     data index 0 using 1:6 with linespoints title "median group", \
     data index 3 using 1:5 with linespoints title "last group, three axes"
set title "one switch of the group over all agents"
set ylabel "us, virtual"
plot data index 0 using 1:9 with linespoints title "decided", \
     data index 0 using 1:8 with linespoints title "recorded everywhere"
set title "load of one agent"
set ylabel "share of a core"
plot data index 0 using 1:14 with linespoints title "leader of all agents", \
     data index 0 using 1:16 with linespoints title "keeper of the turns", \
     data index 0 using 1:17 with linespoints title "busiest"
set title "messages"
set ylabel "sent and received"
set logscale y
plot data index 0 using 1:10 with linespoints title "all agents (sent)", \
     data index 0 using 1:13 with linespoints title "leader of all agents", \
     data index 0 using 1:18 with linespoints title "registrations at one owner"
unset multiplot
