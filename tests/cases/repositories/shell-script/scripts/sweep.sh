#!/usr/bin/env bash
# Writes a line for each setting to logs-N/ beside this script, and the best one to where it was called.
here=$(dirname "$0")
mkdir -p "$here/logs-$1"
best=0
for setting in $(seq "$1"); do
    score=$((setting * setting))
    echo "setting $setting scored $score" | tee "$here/logs-$1/$setting.txt"
    best=$score
done
echo "$best" > "best-$1.txt"
