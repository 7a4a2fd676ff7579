mkdir -p ../../logs
echo "$(basename "$(dirname "$PWD")") $(basename "$PWD")" > ../../logs/last.txt
cat ../../logs/last.txt > ../here.txt
